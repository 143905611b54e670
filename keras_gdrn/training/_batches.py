"""From images and integer labels to what a training step takes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn.data._array_batches import array_batches, mapped
from keras_gdrn.data._random import epoch_generators
from keras_gdrn.training._augment import augment
from keras_gdrn.training._images import check_image_type, checked_images
from keras_gdrn.training._labels import as_targets, check_labels
from keras_gdrn.training._numpy_batches import NumPyBatches, batch_seeds
from keras_gdrn.training._recipe import Recipe
from keras_gdrn.training._tensors import has_tensorflow, namespace

if TYPE_CHECKING:
    import tensorflow as tf

# So many images of an array are checked before training, the others when they come up.
CHECKED = 64


def training_batches(data: Any, recipe: Recipe, classes: int, seed: int = 0) -> Any:
    """Shuffled batches of augmented images and one-hot labels, as `fit` takes them.

    Args:
        data: Arrays `(images, labels)` or `(images, labels, weights)`, or a
            `tf.data.Dataset` of such batches that shuffles them itself, such as
            `rescaled(…, batch_size=recipe.batch_size, shuffle=True)`. Images are
            `(N, H, W, C)` floats in [0, 1]; labels are integers, `(N,)` or `(N, 1)`,
            or one-hot, `(N, classes)`; weights of the images are `(N,)`.
        recipe: A `Recipe`; gives the size of the batches and the augmentation.
        classes: Number of outputs of the model; 1 for one score of two classes.
        seed: Seed of the shuffling of arrays and of the augmentation: the same one
            gives the same sequence of epochs, and the n-th iteration is the n-th epoch.

    Returns:
        A `tf.data.Dataset` of known cardinality with elements (images, labels):
        `(N, H, W, C)` float32 and `(N, classes)` float32, and the weights `(N,)`
        float32 if there are any. The last batch may be smaller. Where TensorFlow is
        not installed, a `keras.utils.PyDataset` of the same batches of arrays, whose
        n-th epoch is that after `begin_epoch(n)`.

    Raises:
        ValueError: If `data` are not such arrays or batches, of the recipe's size.
        tf.errors.InvalidArgumentError: If a label is not a class, or an image has
            values far beyond 1, when it is reached; without TensorFlow, a `ValueError`.

    Example:

    >>> data = rescaled("digits", "train", batch_size=32, shuffle=True)
    >>> training_batches(data, Recipe(1, 32), classes=10).element_spec[1].shape
    TensorShape([None, 10])
    """

    def prepare(batch: tuple, seed: Any) -> tuple:
        images, *others = _prepared(classes, *batch)
        return augment(images, seed, recipe.augmentation), *others

    data = _checked(data, classes)
    if isinstance(data, tuple) and not has_tensorflow():
        return NumPyBatches(data, recipe.batch_size, prepare, seed)
    import tensorflow as tf

    if isinstance(data, tuple):
        data = _in_batches(data, recipe.batch_size, shuffle=True, seed=seed)
    _check_size(data, recipe.batch_size)  # an iteration, before that of the first epoch
    count, generators = data.cardinality(), epoch_generators(seed)

    def seeds() -> Iterator[np.ndarray]:
        yield from batch_seeds(next(generators), int(count))

    # In this order: shuffling moves numbers, not images; a batch is augmented as one
    # tensor, which is several times faster than image by image; nothing is cached after
    # that, as every epoch is augmented anew; and the next batches are made while the
    # network trains on this one.
    seed_of_batch = tf.data.Dataset.from_generator(
        seeds, output_signature=tf.TensorSpec((2,), "int64")
    )
    data = tf.data.Dataset.zip((data, seed_of_batch))
    data = data.apply(tf.data.experimental.assert_cardinality(count))
    data = mapped(data, prepare)
    return data.prefetch(tf.data.AUTOTUNE)


def evaluation_batches(data: Any, batch_size: int, classes: int) -> Any:
    """Batches of all images, in their order, with one-hot labels.

    Args:
        data: As for `training_batches`.
        batch_size: Size of batches made of arrays; the last one may be smaller.
        classes: As for `training_batches`.

    Returns:
        A `tf.data.Dataset`, or a `keras.utils.PyDataset`, with the elements of
        `training_batches`.

    Raises:
        ValueError, tf.errors.InvalidArgumentError: As `training_batches`.

    Example:

    >>> data = rescaled("digits", "test", batch_size=100)
    >>> len(evaluation_batches(data, 100, classes=10))
    8
    """
    data = _checked(data, classes)
    if isinstance(data, tuple) and not has_tensorflow():
        return NumPyBatches(
            data, batch_size, lambda batch, _: _prepared(classes, *batch), seed=None
        )
    import tensorflow as tf

    if isinstance(data, tuple):
        data = _in_batches(data, batch_size)
    else:
        checked_images(next(iter(data))[0])
    data = mapped(data, lambda *batch: _prepared(classes, *batch))
    return data.prefetch(tf.data.AUTOTUNE)


def _prepared(classes: int, images: Any, labels: Any, *weights: Any) -> tuple:
    asarray = namespace(images).asarray
    weights = tuple(asarray(part, dtype="float32") for part in weights)
    return checked_images(images), as_targets(labels, classes), *weights


def _checked(data: Any, classes: int) -> Any:
    """NumPy arrays as a tuple, or batches as they are, if they are fit."""
    if isinstance(data, tuple) and len(data) in (2, 3):
        arrays = tuple(map(np.asarray, data))
        _check_parts(arrays, classes)
        checked_images(arrays[0][:CHECKED])
        return arrays
    if isinstance(data, tuple) or not hasattr(data, "element_spec"):
        raise ValueError(
            "`data` must be arrays (images, labels) or (images, labels, weights), as a "
            "tuple, or a `tf.data.Dataset` of such batches. With other data, compile "
            f"the model and use `model.fit`. Received: {_described(data)}"
        )
    _check_parts(data.element_spec, classes)
    if int(data.cardinality()) <= 0:
        raise ValueError(
            "`data` must have a known, finite number of batches. "
            f"Received: a cardinality of {int(data.cardinality())}"
        )
    return data


def _check_parts(parts: Any, classes: int) -> None:
    """Raises an error unless arrays, or specifications, are those of batches."""
    shapes = [part.shape for part in parts] if isinstance(parts, tuple) else []
    ranks = [s.rank if hasattr(s, "rank") else len(s) for s in shapes]
    if len(ranks) < 2 or (ranks[0], *ranks[2:]) not in ((4,), (4, 1)):
        raise ValueError(
            "`data` must have batches of images (N, H, W, C), of labels and, if need "
            "be, of weights (N,) as elements. With other data, compile the model and "
            f"use `model.fit`. Received: {shapes or parts}"
        )
    check_image_type(parts[0].dtype)
    check_labels(parts[1], classes)


def _in_batches(
    arrays: tuple[np.ndarray, ...], batch_size: int, **shuffling: Any
) -> "tf.data.Dataset":
    images, labels, *rest = arrays
    weights = rest[0] if rest else None
    data = array_batches(images, labels, batch_size, weights=weights, **shuffling)
    if len(images) % batch_size:
        return data
    return mapped(data, lambda *batch: _of_size(batch_size, *batch))


def _of_size(size: int, *batch: "tf.Tensor") -> tuple:
    """A batch whose shape tells that it is whole."""
    import tensorflow as tf

    return tuple(tf.ensure_shape(part, (size, *part.shape[1:])) for part in batch)


def _described(data: Any) -> str:
    if isinstance(data, tuple | list):
        return f"a {type(data).__name__} of {len(data)}"
    return type(data).__name__


def _check_size(data: "tf.data.Dataset", batch_size: int) -> None:
    images = next(iter(data.take(1)))[0]
    checked_images(images)
    size = len(images)
    alone = int(data.cardinality()) == 1
    if size > batch_size or (size < batch_size and not alone):
        raise ValueError(
            f"`data` must have batches of the recipe's size, {batch_size}. "
            f"Received: a batch of {size}"
        )
