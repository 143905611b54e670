"""Batches for several devices: each device gets an equal share."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import keras
import numpy as np

from keras_gdrn.data._array_batches import mapped
from keras_gdrn.training import _processes
from keras_gdrn.training._numpy_batches import NumPyBatches
from keras_gdrn.training._recipe import Recipe
from keras_gdrn.training._tensors import namespace, numbers_below, required, shape_of

if TYPE_CHECKING:
    import tensorflow as tf

_AUTOTUNE = -1  # `tf.data.AUTOTUNE`


def recipe_on(devices: int, recipe: Recipe) -> Recipe:
    """The recipe with the largest batch size that the devices can share.

    Raises:
        ValueError: If there are more devices than images in a batch.
    """
    size = recipe.batch_size
    if size < devices:
        raise ValueError(
            "`recipe.batch_size` must be at least the number of devices. "
            f"Received: {size} on {devices} devices"
        )
    return dataclasses.replace(recipe, batch_size=size - size % devices)


def whole_batches(batches: Any, devices: int) -> Any:
    """Training batches of one size that the devices can share; this process' part.

    What is left out of an epoch comes up in another one, as the data are shuffled: of
    each batch, the images beyond a multiple of `devices`, and the last batch, which
    may be smaller, unless the batches tell that it is not.
    """
    if len(batches) > 1 and not _are_whole(batches):
        batches = batches.take(len(batches) - 1)

    def cut(images: Any, *others: Any) -> tuple:
        size = shape_of(images)[0]
        message = f"A batch must have an image for each of {devices} devices. Received:"
        images = required(images, size >= devices, message, size)
        return tuple(part[: size - size % devices] for part in (images, *others))

    return _own_part(_mapped(batches, cut))


def _are_whole(batches: Any) -> bool:
    if isinstance(batches, NumPyBatches):
        return len(batches.order) % batches.batch_size == 0
    return batches.element_spec[0].shape[0] is not None


def filled_batches(batches: Any, devices: int) -> Any:
    """Validation batches filled up to a multiple of `devices`; this process' part.

    What is filled in has the weight zero. Keras divides the sum of the weighted losses
    by the number of all images, these included: so the weight of the others is, on the
    whole, as much more than one.
    """
    sizes = [len(batch[0]) for batch in batches]  # only of the last one is it unknown
    rows = [size + -size % devices for size in sizes]
    weight = sum(rows) / sum(sizes)

    def fill(*batch: Any) -> tuple:
        xp, size = namespace(batch[0]), shape_of(batch[0])[0]
        row = numbers_below(size + -size % devices)
        filled = [xp.take(part, row % size, axis=0) for part in batch]
        weights = xp.where(row < size, np.float32(weight), np.float32(0.0))
        return *filled[:2], weights * filled[2] if filled[2:] else weights

    return _own_part(_mapped(batches, fill))


def repeated(
    batches: Any, model: keras.Model, devices: int, first: int, end: int
) -> tuple[Any, list[keras.callbacks.Callback]]:
    """The batches of all epochs from `first` to `end`, and the callbacks they need.

    Keras then makes one iterator over all of them; otherwise, several in each epoch.
    There are no more: a further iteration, begun to read ahead, would change the orders
    of the stage that follows.
    """
    if isinstance(batches, NumPyBatches):  # Keras makes one iterator per epoch
        begin = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: batches.begin_epoch(epoch)
        )
        return batches, [begin]
    for _ in range(first):  # the n-th iteration has the order of the n-th epoch
        next(iter(batches))
    blank = _blank_batch(batches, model, devices)
    if blank is None or (devices == 1 and keras.backend.backend() == "tensorflow"):
        return _flattened(lambda: range(first, end), batches, lambda _: batches), []
    training, begun = repeated_in_training(batches, blank, end - first)
    return training, [begun]


def _blank_batch(
    batches: "tf.data.Dataset", model: keras.Model, devices: int
) -> tuple[np.ndarray, ...] | None:
    """A batch of zeros; None if the size of the images is not known."""
    spec = cast(Any, batches.element_spec)
    # Where one of the two leaves the size of the images open, the other has it.
    image = spec[0].shape[1:].merge_with(model.input_shape[1:])
    if None in tuple(image):
        return None
    shapes = [image, *(part.shape[1:] for part in spec[1:])]
    return tuple(np.zeros((devices, *shape), "float32") for shape in shapes)


def repeated_in_training(
    batches: "tf.data.Dataset", blank: tuple, epochs: int
) -> tuple["tf.data.Dataset", keras.callbacks.Callback]:
    """`batches` for all epochs, and the callback which tells that training has begun.

    On JAX, on PyTorch and under a strategy, Keras looks at one batch before it makes
    the iterator to train with. That would be an iteration over `batches`, which has its
    own order: so iterators made before training get `blank` instead.
    """
    import tensorflow as tf

    begun = []  # holds something then
    callback = keras.callbacks.LambdaCallback(on_train_begin=begun.append)
    blanks = tf.data.Dataset.from_tensors(blank)

    def chosen(training: "tf.Tensor") -> "tf.data.Dataset":
        # `take(0)` is nothing, `take(-1)` everything.
        return blanks.take(1 - training).concatenate(batches.take(-training))

    def phases() -> Iterator[int]:
        return itertools.repeat(1, epochs) if begun else itertools.repeat(0)

    return _flattened(phases, batches, chosen), callback


def _flattened(
    numbers: Callable[[], Iterable[int]], batches: "tf.data.Dataset", choose: Callable
) -> "tf.data.Dataset":
    """The data sets that are chosen by each number, one after the other.

    Unlike `repeat`, this begins no further iteration after the last.
    """
    import tensorflow as tf

    spec = tf.TensorSpec((), "int64")
    data: tf.data.Dataset = tf.data.Dataset.from_generator(
        numbers, output_signature=spec
    )
    data = data.with_options(batches.options())  # flat_map takes no other's
    return data.flat_map(choose).prefetch(tf.data.AUTOTUNE)


def _own_part(batches: Any) -> Any:
    processes, number = _processes.count(), _processes.number()

    def own(*batch: Any) -> tuple:
        part = shape_of(batch[0])[0] // processes
        return tuple(x[number * part : (number + 1) * part] for x in batch)

    batches = _mapped(batches, own)
    return batches if isinstance(batches, NumPyBatches) else batches.prefetch(_AUTOTUNE)


def _mapped(batches: Any, function: Callable[..., tuple]) -> Any:
    if isinstance(batches, NumPyBatches):
        return batches.map(function)
    return mapped(batches, function)
