"""The random numbers of `augment`: all of a batch's, in one place."""

from typing import Any, NamedTuple

import numpy as np

from keras_gdrn.data._separable import is_tensor


class Draws(NamedTuple):
    """What is drawn for each of N images, whether it is used or not.

    Attributes:
        corners: `(N, 2)` int32, of the window in the padded image.
        flipped: `(N,)` bool.
        order: `(N, 4)` int32, the steps of the jitter.
        factors: `(N, 4)` float32, of each step, for the hue its shift.
        centers: `(N, 2)` int32, of the cutout.
    """

    corners: Any
    flipped: Any
    order: Any
    factors: Any
    centers: Any


# Of each image: the types and shapes of its draws, and how many numbers these take.
_DTYPES = ("int32", "bool", "int32", "float32", "int32")
_SHAPES = ((2,), (), (4,), (4,), (2,))
_ENDS = (2, 3, 7, 11, 13)


def draw(seed: Any, shape: Any, augmentation: Any) -> Draws:
    """The numbers for images of a shape `(N, H, W, C)`: each image has its own.

    Args:
        seed: Integers; the same ones have the same numbers.
        shape: Shape of the images.
        augmentation: An `Augmentation`.
    """
    count, height, width, _ = shape
    random = np.random.default_rng(np.asarray(seed, "int64").view("uint64"))
    chances = random.random((count, _ENDS[-1]))
    corner, flip, order, factor, center = np.split(chances, _ENDS[:-1], axis=1)
    lowest, highest = _ranges(augmentation.jitter)
    drawn = Draws(
        corner * (2 * augmentation.padding + 1),
        flip[:, 0] < augmentation.flip,
        np.argsort(order),
        lowest + (highest - lowest) * factor,
        center * (height, width),
    )
    return Draws(*(part.astype(t) for part, t in zip(drawn, _DTYPES, strict=True)))


def draws(images: Any, seed: Any, augmentation: Any) -> Draws:
    """The numbers for an array of images or, as tensors, for a tensor."""
    if not is_tensor(images):
        return draw(seed, images.shape, augmentation)
    import tensorflow as tf

    drawn: Any = tf.numpy_function(
        lambda seed, shape: tuple(draw(seed, shape, augmentation)),
        [seed, tf.shape(images)],
        [tf.as_dtype(dtype) for dtype in _DTYPES],
        stateful=False,
    )
    for part, shape in zip(drawn, _SHAPES, strict=True):
        part.set_shape((images.shape[0], *shape))
    return Draws(*drawn)


def _ranges(strengths: tuple[float, ...]) -> np.ndarray:
    """Lowest and highest factors, `(2, 4)`; for the hue, of its shift."""
    *factors, hue = strengths
    lowest = [*(max(0.0, 1.0 - strength) for strength in factors), -hue]
    highest = [*(1.0 + strength for strength in factors), hue]
    return np.array([lowest, highest])
