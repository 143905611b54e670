"""From images and integer labels to what a training step takes."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn._checks import check_number
from keras_gdrn.data._array_batches import array_batches, checked_count, mapped
from keras_gdrn.data._random import epoch_generators
from keras_gdrn.training._augment import augment
from keras_gdrn.training._images import CHECKED, check_image_type, checked_images
from keras_gdrn.training._labels import as_targets, check_labels
from keras_gdrn.training._numpy_batches import NumPyBatches, batch_seeds
from keras_gdrn.training._recipe import Recipe
from keras_gdrn.training._tensors import (
    has_numbers,
    has_tensorflow,
    namespace,
    numpy_dtype,
    required,
)

if TYPE_CHECKING:
    import tensorflow as tf


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
        ValueError: If `data` are not such arrays or batches, of the recipe's size; of
            arrays, and of the first batch, also if a label is not a class, an image
            has values far beyond 1 (or more than 0.3 outside [0, 1], to which color
            jitter would clip them), or a weight is not a finite number >= 0.
        tf.errors.InvalidArgumentError: If that is so in a later batch, when it is
            reached.

    Example:

    >>> data = rescaled("digits", "train", batch_size=32, shuffle=True)
    >>> training_batches(data, Recipe(1, 32), classes=10).element_spec[1].shape
    TensorShape([None, 10])
    """

    def prepared(*batch: Any) -> tuple:
        return _prepared(classes, any(recipe.augmentation.jitter), *batch)

    def prepare(batch: tuple, seed: Any) -> tuple:
        images, *others = prepared(*batch)
        return augment(images, seed, recipe.augmentation), *others

    check_number("seed", seed, whole=True)
    data = _checked(data, classes, prepared)
    if isinstance(data, tuple) and not has_tensorflow():
        return NumPyBatches(data, recipe.batch_size, prepare, seed)
    import tensorflow as tf

    if isinstance(data, tuple):
        data = _in_batches(data, recipe.batch_size, shuffle=True, seed=seed)
    first = next(iter(data.take(1)))  # an iteration, before that of the first epoch
    prepared(*first)
    _check_size(len(first[0]), recipe.batch_size, alone=int(data.cardinality()) == 1)
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

    def prepared(*batch: Any) -> tuple:
        return _prepared(classes, False, *batch)

    data = _checked(data, classes, prepared)
    if isinstance(data, tuple) and not has_tensorflow():
        return NumPyBatches(
            data, batch_size, lambda batch, _: prepared(*batch), seed=None
        )
    import tensorflow as tf

    if isinstance(data, tuple):
        data = _in_batches(data, batch_size)
    else:
        prepared(*next(iter(data)))
    return mapped(data, prepared).prefetch(tf.data.AUTOTUNE)


def check_size_of_images(name: str, batches: Any, shape: tuple) -> None:
    """Raises an error unless a model takes the images, as far as their size is known.

    Args:
        name: Name of the data.
        batches: What the functions above return.
        shape: Shape of the model's input.
    """
    is_arrays = isinstance(batches, NumPyBatches)
    images = batches.arrays[0] if is_arrays else batches.element_spec[0]
    found = tuple(images.shape)[1:]
    pairs = zip(found, shape[1:], strict=True)
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise ValueError(
            f"`{name}` must have images of the shape that the model takes, "
            f"{tuple(shape[1:])}. Received: images of shape {found}"
        )


def weighted(batches: Any, class_weight: Mapping[int, float] | None) -> Any:
    """The batches, each image with the weight of its class, times its own."""
    if class_weight is None:
        return batches
    of_class = np.array([class_weight[n] for n in sorted(class_weight)], "float32")

    def weigh(images: Any, targets: Any, *weights: Any) -> tuple:
        xp = namespace(targets)
        is_one = targets.shape[1] == 1
        number = targets[:, 0] if is_one else xp.argmax(targets, axis=1)
        weight = xp.take(of_class, xp.asarray(number, dtype="int32"))
        return images, targets, weight * weights[0] if weights else weight

    if isinstance(batches, NumPyBatches):
        return batches.map(weigh)
    return mapped(batches, weigh).prefetch(-1)  # `tf.data.AUTOTUNE`


def _prepared(
    classes: int, jitter: bool, images: Any, labels: Any, *weights: Any
) -> tuple:
    images = checked_images(images, jitter)
    return images, as_targets(labels, classes), *map(_checked_weights, weights)


def _checked_weights(weights: Any) -> Any:
    xp = namespace(weights)
    weights = xp.asarray(weights, dtype="float32")
    fits = (weights >= 0) & xp.isfinite(weights)
    message = "Weights of images must be finite numbers >= 0. Received:"
    return required(weights, xp.all(fits), message, weights[~fits][:8])


def _checked(data: Any, classes: int, prepared: Callable[..., tuple]) -> Any:
    """NumPy arrays as a tuple, or batches as they are, if they are fit."""
    if isinstance(data, tuple) and len(data) in (2, 3):
        arrays = tuple(map(np.asarray, data))
        _check_parts(arrays, classes)
        for start in range(0, checked_count(*arrays), CHECKED):
            prepared(*(array[start : start + CHECKED] for array in arrays))
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
    parts = parts if isinstance(parts, tuple) else (parts,)
    ranks = [_rank(part) for part in parts]
    is_batch = len(ranks) > 1 and (ranks[0], *ranks[2:]) in ((4,), (4, 1))
    if not is_batch or None in ranks:
        raise ValueError(
            "`data` must have batches of images (N, H, W, C), of labels and, if need "
            "be, of weights (N,) as elements. With other data, compile the model and "
            f"use `model.fit`. Received: {[getattr(p, 'shape', p) for p in parts]}"
        )
    check_image_type(parts[0])
    check_labels(parts[1], classes)
    if parts[2:] and not has_numbers(parts[2]):
        raise ValueError(
            "Weights of images must be of a type of numbers. "
            f"Received: weights of type {numpy_dtype(parts[2])}"
        )


def _rank(part: Any) -> int | None:
    """The rank of a tensor; None of one that does not tell it, and of a structure."""
    shape = getattr(part, "shape", None)
    if shape is None or getattr(shape, "rank", 0) is None:
        return None
    return len(shape)


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


def _check_size(size: int, batch_size: int, alone: bool) -> None:
    if size > batch_size or (size < batch_size and not alone):
        raise ValueError(
            f"`data` must have batches of the recipe's size, {batch_size}. "
            f"Received: a batch of {size}"
        )
