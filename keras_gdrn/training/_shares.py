"""Batches for several devices: each device gets an equal share."""

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any, cast

import keras
import numpy as np

from . import _processes
from ._numpy_batches import NumPyBatches
from ._recipe import Recipe

if TYPE_CHECKING:
    import tensorflow as tf


def recipe_on(devices: int, recipe: Recipe) -> Recipe:
    """The recipe with the largest batch size that the devices can share.

    Raises:
        ValueError: if there are more devices than images in a batch.
    """
    size = recipe.batch_size
    if size < devices:
        raise ValueError(
            "`recipe.batch_size` must be at least the number of devices. "
            f"Received: {size} on {devices} devices"
        )
    return dataclasses.replace(recipe, batch_size=size - size % devices)


def whole_batches(batches: "tf.data.Dataset", devices: int) -> "tf.data.Dataset":
    """Training batches of one size that the devices can share; this process' part.

    What is left out of an epoch comes up in another one, as the data are shuffled: of
    each batch, the images beyond a multiple of `devices`, and the last batch, which
    may be smaller, unless the shape of the batches says that it is not.
    """
    import tensorflow as tf

    steps, spec = int(batches.cardinality()), cast(Any, batches.element_spec)
    if steps > 1 and spec[0].shape[0] is None:
        batches = batches.take(steps - 1)

    def cut(*batch: Any) -> tuple:
        size: Any = tf.shape(batch[0])[0]
        message = f"A batch must have an image for each of {devices} devices."
        enough = tf.debugging.assert_greater_equal(size, devices, message)
        with tf.control_dependencies([enough] if enough is not None else []):
            return tuple(part[: size - size % devices] for part in batch)

    return _own_part(batches.map(cut, num_parallel_calls=tf.data.AUTOTUNE))


def filled_batches(batches: "tf.data.Dataset", devices: int) -> "tf.data.Dataset":
    """Validation batches filled up to a multiple of `devices`; this process' part.

    What is filled in has the weight zero. Keras divides the sum of the weighted losses
    by the number of all images, these included: so the weight of the others is, on the
    whole, as much more than one.
    """
    import tensorflow as tf

    sizes = [len(batch[0]) for batch in batches]  # only of the last one is it unknown
    rows = [size + -size % devices for size in sizes]
    weight = sum(rows) / sum(sizes)

    def fill(images: Any, labels: Any, *given: Any) -> tuple:
        size: Any = tf.shape(images)[0]
        row = tf.range(size + -size % devices)
        weights = tf.where(row < size, weight, 0.0)
        filled = [tf.gather(part, row % size) for part in (images, labels, *given)]
        return *filled[:2], weights * filled[2] if given else weights

    return _own_part(batches.map(fill, num_parallel_calls=tf.data.AUTOTUNE))


def repeated(
    batches: Any, model: keras.Model, devices: int, first: int
) -> tuple[Any, list[keras.callbacks.Callback]]:
    """The batches of all epochs from the `first`, and the callbacks that these need.

    Keras makes one iterator over them then, else some per epoch.
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
        return batches.repeat(), []
    training, begun = repeated_in_training(batches, blank)
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
    batches: "tf.data.Dataset", blank: tuple
) -> tuple["tf.data.Dataset", keras.callbacks.Callback]:
    """`batches` repeated, and the callback which tells that training has begun.

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

    phases: tf.data.Dataset = tf.data.Dataset.from_generator(
        lambda: itertools.repeat(int(bool(begun))),
        output_signature=tf.TensorSpec((), "int64"),
    )
    return phases.flat_map(chosen).prefetch(tf.data.AUTOTUNE), callback


def _own_part(batches: "tf.data.Dataset") -> "tf.data.Dataset":
    import tensorflow as tf

    processes, number = _processes.count(), _processes.number()

    def own(*batch: Any) -> tuple:
        part = tf.shape(batch[0])[0] // processes
        return tuple(x[number * part : (number + 1) * part] for x in batch)

    return batches.map(own).prefetch(tf.data.AUTOTUNE)
