"""Batches of arrays that fit in memory, in order or shuffled."""

import math
from collections.abc import Callable, Iterator, Sized
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn.data._random import epoch_generators

if TYPE_CHECKING:
    import tensorflow as tf


def array_batches(
    images: "np.ndarray | tf.Tensor",
    labels: "np.ndarray | tf.Tensor",
    batch_size: int,
    *,
    weights: np.ndarray | None = None,
    shuffle: bool = False,
    seed: int = 0,
) -> "tf.data.Dataset":
    """Batches (images, labels); with `shuffle`, in another order in each iteration.

    With weights of the images, batches (images, labels, weights). The order is that of
    `epoch_generators(seed)`. Indices are shuffled, not images, so that shuffling all of
    them costs next to nothing. The last batch may be smaller.
    """
    import tensorflow as tf

    arrays = [images, labels] + ([] if weights is None else [weights])
    count = checked_count(*arrays)
    generators = epoch_generators(seed)

    def numbers() -> Iterator[np.ndarray]:
        order = next(generators).permutation(count) if shuffle else np.arange(count)
        for start in range(0, count, batch_size):
            yield order[start : start + batch_size]

    with tf.device("CPU"):  # a GPU would be given a copy of the whole data set
        tensors = [tf.constant(array) for array in arrays]
    data = tf.data.Dataset.from_generator(
        numbers, output_signature=tf.TensorSpec((None,), "int64")
    )
    batches = math.ceil(count / batch_size)
    data = data.apply(tf.data.experimental.assert_cardinality(batches))
    return mapped(
        untuned(data),
        lambda index: tuple(tf.gather(tensor, index) for tensor in tensors),
    )


def converted_arrays(
    images: "np.ndarray | tf.Tensor",
    labels: "np.ndarray | tf.Tensor",
    convert: Callable,
    batch_size: int | None,
    chunk: int,
    *,
    shuffle: bool,
    seed: int,
) -> "tf.data.Dataset":
    """Batches of arrays, or single elements, as `convert(images, labels)` has them.

    Args:
        images, labels: They stay in memory as they are, and are converted in batches.
        convert: Function of batches.
        batch_size: Images in a batch, or `None` for single elements.
        chunk: How many are converted at once where there is no batch size.
        shuffle, seed: As for `array_batches`.
    """
    import tensorflow as tf

    def batches() -> tf.data.Dataset:
        data = array_batches(
            images, labels, batch_size or chunk, shuffle=shuffle, seed=seed
        )
        data = mapped(data, convert)
        if batch_size is None:
            data = data.unbatch()
            data = data.apply(tf.data.experimental.assert_cardinality(len(labels)))
        return data.prefetch(tf.data.AUTOTUNE)

    return renewable(batches)


def mapped(data: "tf.data.Dataset", function: Callable) -> "tf.data.Dataset":
    """What a function makes of each element, several at a time.

    The function is traced as it is. Without an `if` or `for` that depends on a tensor,
    TensorFlow would rewrite it for nothing, in a second or two.
    """
    import tensorflow as tf

    function = tf.autograph.experimental.do_not_convert(function)
    return data.map(function, num_parallel_calls=tf.data.AUTOTUNE)


def renewable(make: "Callable[[], tf.data.Dataset]") -> "tf.data.Dataset":
    """What `make` returns; `renewed` makes it anew, with the order of the beginning."""
    data = make()
    data.made_anew = make  # type: ignore[attr-defined]
    return data


def renewed(data: Any) -> Any:
    """A data set like this one, over which nobody has iterated, if it is `renewable`.

    Its orders follow each other from the first iteration on; those of `data` itself go
    on from where an earlier training has left them, and may have been read ahead of it.
    """
    return data.made_anew() if is_renewable(data) else data


def is_renewable(data: Any) -> bool:
    return hasattr(data, "made_anew")


def untuned(data: "tf.data.Dataset") -> "tf.data.Dataset":
    """This, and what is made of it, without the thread that tunes a running pipeline.

    Now and then that thread misses that the iterator is let go, and whoever does so
    waits until it wakes up again: up to a minute, with nothing to compute. Without it,
    each step of a pipeline uses as many threads as there are processors.
    """
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    return data.with_options(options)


def checked_count(images: Sized, labels: Sized, *weights: Sized) -> int:
    """The number of images, or an error unless there are as many of all."""
    count = len(labels)
    if len(images) != count or not count:
        raise ValueError(
            "There must be as many labels as images, and at least one. "
            f"Received: {len(images)} images and {count} labels"
        )
    if weights and len(weights[0]) != count:
        raise ValueError(
            "There must be as many weights as images. "
            f"Received: {count} images and {len(weights[0])} weights"
        )
    return count
