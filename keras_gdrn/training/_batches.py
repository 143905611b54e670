"""From images and integer labels to what a training step takes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn.data._array_batches import array_batches
from keras_gdrn.data._random import epoch_generators

from ._augment import augment
from ._recipe import Recipe

if TYPE_CHECKING:
    import tensorflow as tf


def training_batches(
    data: Any, recipe: Recipe, classes: int, seed: int = 0
) -> "tf.data.Dataset":
    """Shuffled batches of augmented images and one-hot labels, as `fit` takes them.

    Args:
        data: arrays `(images, labels)`, or a `tf.data.Dataset` of batches that
            shuffles them itself, such as `rescaled(…, batch_size=recipe.batch_size,
            shuffle=True)`. Images are `(N, H, W, C)` in [0, 1], labels `(N,)`
            integers.
        recipe: a `Recipe`; gives the size of the batches and the augmentation.
        classes: number of classes.
        seed: of the shuffling of arrays and of the augmentation: the same seed gives
            the same sequence of epochs, and the n-th iteration is the n-th epoch.

    Returns:
        A `tf.data.Dataset` of known cardinality with elements (images, labels):
        `(N, H, W, C)` float32 and `(N, classes)` float32. The last batch may be
        smaller.

    Raises:
        ValueError: if `data` are not such arrays or batches, of the recipe's size.
        tf.errors.InvalidArgumentError: if a label is no class, when it is reached.

    Example:

    >>> data = rescaled("digits", "train", batch_size=32, shuffle=True)
    >>> training_batches(data, Recipe(1, 32), classes=10).element_spec[1].shape
    TensorShape([None, 10])
    """
    import tensorflow as tf

    if isinstance(data, tuple):
        images, labels = data
        data = array_batches(images, labels, recipe.batch_size, shuffle=True, seed=seed)
    _check_batches(data)
    _check_size(data, recipe.batch_size)
    generators = epoch_generators(seed)

    def seeds() -> Iterator[np.ndarray]:
        random = next(generators)
        while True:
            yield random.integers(2**31, size=2)

    def prepare(batch: tuple, seed: "tf.Tensor") -> tuple:
        images, labels = batch
        return augment(images, seed, recipe.augmentation), _one_hot(labels, classes)

    # In this order: shuffling moves numbers, not images; a batch is augmented as one
    # tensor, which is some times faster than image by image; nothing is cached after
    # it, as every epoch is augmented anew; and the next batches are made while the
    # network trains on this one.
    count = data.cardinality()
    seed_of_batch = tf.data.Dataset.from_generator(
        seeds, output_signature=tf.TensorSpec((2,), "int64")
    )
    data = tf.data.Dataset.zip((data, seed_of_batch))
    data = data.apply(tf.data.experimental.assert_cardinality(count))
    data = data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def evaluation_batches(data: Any, batch_size: int, classes: int) -> "tf.data.Dataset":
    """Batches of all images, in their order, with one-hot labels.

    Args:
        data: as for `training_batches`.
        batch_size: of batches made of arrays; the last one may be smaller.
        classes: number of classes.

    Returns:
        A `tf.data.Dataset` with the elements of `training_batches`.

    Raises:
        ValueError, tf.errors.InvalidArgumentError: as `training_batches`.

    Example:

    >>> data = rescaled("digits", "test", batch_size=100)
    >>> len(evaluation_batches(data, 100, classes=10))
    8
    """
    import tensorflow as tf

    if isinstance(data, tuple):
        images, labels = data
        data = array_batches(images, labels, batch_size)
    _check_batches(data)

    def prepare(images: "tf.Tensor", labels: "tf.Tensor") -> tuple:
        return images, _one_hot(labels, classes)

    data = data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def _one_hot(labels: "tf.Tensor", classes: int) -> "tf.Tensor":
    import tensorflow as tf

    labels = tf.cast(labels, "int32")
    known = tf.reduce_all((labels >= 0) & (labels < classes))
    message = f"Labels must number the {classes} classes of the model from 0. Received:"
    with tf.control_dependencies([tf.debugging.Assert(known, [message, labels])]):
        return tf.one_hot(labels, classes)


def _check_batches(data: Any) -> None:
    import tensorflow as tf

    if not isinstance(data, tf.data.Dataset):
        raise ValueError(
            "`data` must be arrays (images, labels) or a `tf.data.Dataset` of such "
            f"batches. Received: {type(data).__name__}"
        )
    spec: Any = data.element_spec
    if not isinstance(spec, tuple) or [part.shape.rank for part in spec] != [4, 1]:
        raise ValueError(
            "`data` must have batches of images (N, H, W, C) and of integer labels "
            f"(N,) as elements. Received: {spec}"
        )
    if int(data.cardinality()) <= 0:
        raise ValueError(
            "`data` must have a known, finite number of batches. "
            f"Received: a cardinality of {int(data.cardinality())}"
        )


def _check_size(data: "tf.data.Dataset", batch_size: int) -> None:
    (found,) = (len(labels) for _, labels in data.take(1))
    alone = int(data.cardinality()) == 1
    if found > batch_size or (found < batch_size and not alone):
        raise ValueError(
            f"`data` must have batches of the recipe's size, {batch_size}. "
            f"Received: a batch of {found}"
        )
