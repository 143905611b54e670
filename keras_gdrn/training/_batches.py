"""From images and integer labels to what a training step takes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn.data._array_batches import array_batches
from keras_gdrn.data._random import epoch_generators

from ._augment import augment
from ._images import check_image_type, checked_images
from ._labels import as_targets, check_labels
from ._recipe import Recipe

if TYPE_CHECKING:
    import tensorflow as tf


def training_batches(
    data: Any, recipe: Recipe, classes: int, seed: int = 0
) -> "tf.data.Dataset":
    """Shuffled batches of augmented images and one-hot labels, as `fit` takes them.

    Args:
        data: arrays `(images, labels)` or `(images, labels, weights)`, or a
            `tf.data.Dataset` of such batches that shuffles them itself, such as
            `rescaled(…, batch_size=recipe.batch_size, shuffle=True)`. Images are
            `(N, H, W, C)` floats in [0, 1]; labels are integers, `(N,)` or `(N, 1)`,
            or one-hot, `(N, classes)`; weights of the images are `(N,)`.
        recipe: a `Recipe`; gives the size of the batches and the augmentation.
        classes: number of outputs of the model; 1 for one score of two classes.
        seed: of the shuffling of arrays and of the augmentation: the same seed gives
            the same sequence of epochs, and the n-th iteration is the n-th epoch.

    Returns:
        A `tf.data.Dataset` of known cardinality with elements (images, labels):
        `(N, H, W, C)` float32 and `(N, classes)` float32, and the weights `(N,)`
        float32 if there are any. The last batch may be smaller.

    Raises:
        ValueError: if `data` are not such arrays or batches, of the recipe's size.
        tf.errors.InvalidArgumentError: if a label is no class, or an image has values
            far beyond 1, when it is reached.

    Example:

    >>> data = rescaled("digits", "train", batch_size=32, shuffle=True)
    >>> training_batches(data, Recipe(1, 32), classes=10).element_spec[1].shape
    TensorShape([None, 10])
    """
    import tensorflow as tf

    data = _batches(data, recipe.batch_size, classes, shuffle=True, seed=seed)
    _check_size(data, recipe.batch_size)
    generators = epoch_generators(seed)

    def seeds() -> Iterator[np.ndarray]:
        random = next(generators)
        while True:
            yield random.integers(2**31, size=2)

    def prepare(batch: tuple, seed: "tf.Tensor") -> tuple:
        images, *others = _prepared(classes, *batch)
        return augment(images, seed, recipe.augmentation), *others

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
        classes: as for `training_batches`.

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

    data = _batches(data, batch_size, classes)
    checked_images(next(iter(data))[0])
    data = data.map(
        lambda *batch: _prepared(classes, *batch), num_parallel_calls=tf.data.AUTOTUNE
    )
    return data.prefetch(tf.data.AUTOTUNE)


def _prepared(
    classes: int, images: "tf.Tensor", labels: "tf.Tensor", *weights
) -> tuple:
    import tensorflow as tf

    weights = (tf.cast(tensor, "float32") for tensor in weights)
    return checked_images(images), as_targets(labels, classes), *weights


def _batches(
    data: Any, batch_size: int, classes: int, **shuffling: Any
) -> "tf.data.Dataset":
    """Arrays in batches; batches as they are, if they are fit."""
    import tensorflow as tf

    if isinstance(data, tuple) and len(data) in (2, 3):
        images, labels, *rest = data
        weights = rest[0] if rest else None
        data = array_batches(images, labels, batch_size, weights=weights, **shuffling)
        if len(images) % batch_size == 0:
            data = data.map(lambda *batch: _of_size(batch_size, *batch))
    if not isinstance(data, tf.data.Dataset):
        raise ValueError(
            "`data` must be arrays (images, labels) or (images, labels, weights), as a "
            "tuple, or a `tf.data.Dataset` of such batches. With other data, compile "
            f"the model and use `model.fit`. Received: {_described(data)}"
        )
    spec: Any = data.element_spec
    ranks = [part.shape.rank for part in spec] if isinstance(spec, tuple) else []
    if len(ranks) < 2 or (ranks[0], *ranks[2:]) not in ((4,), (4, 1)):
        raise ValueError(
            "`data` must have batches of images (N, H, W, C), of labels and, if need "
            "be, of weights (N,) as elements. With other data, compile the model and "
            f"use `model.fit`. Received: {spec}"
        )
    check_image_type(spec[0].dtype)
    check_labels(spec[1], classes)
    if int(data.cardinality()) <= 0:
        raise ValueError(
            "`data` must have a known, finite number of batches. "
            f"Received: a cardinality of {int(data.cardinality())}"
        )
    return data


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
    found = len(images)
    alone = int(data.cardinality()) == 1
    if found > batch_size or (found < batch_size and not alone):
        raise ValueError(
            f"`data` must have batches of the recipe's size, {batch_size}. "
            f"Received: a batch of {found}"
        )
