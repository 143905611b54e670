"""Which images, labels and weights are fit for training, as NumPy arrays."""

from typing import Any

import numpy as np

from keras_gdrn.data._imresize import OVERSHOOT

# Digits of scikit-learn reach 16, images of 8 bits 255. Standardized images stay
# below this, even where one pixel in 200 is ink.
LARGEST = 15.0

# So many images of an array are checked at a time, so that intermediates stay small.
CHECKED = 512

_WANTED = (
    "Images must be floats in [0, 1] or, where no color jitter clips them, "
    "standardized: divide images of 8 bits by 255 "
    "(`images.astype('float32') / 255`). Received: "
)
_CLIPPED = (
    "Images must be in [0, 1], to which color jitter clips them: standardize them "
    "inside the network, or train without brightness, contrast, saturation and hue. "
    "Received: lowest and highest value"
)


def numpy_dtype(array: Any) -> np.dtype:
    """The type of an array or of a tensor."""
    return np.dtype(getattr(array.dtype, "as_numpy_dtype", array.dtype))


def has_numbers(array: Any) -> bool:
    """Whether the values are real numbers or booleans."""
    return numpy_dtype(array).kind in "biufV"  # NumPy has no kind for bfloat16


def check_image_type(images: Any) -> None:
    """Raises an error unless images, an array or a tensor, are floats or booleans."""
    if not has_numbers(images) or numpy_dtype(images).kind in "iu":
        raise ValueError(f"{_WANTED}images of type {numpy_dtype(images).name}")


def checked_images(images: np.ndarray, jitter: bool = False) -> np.ndarray:
    """The images as they are, or an error if they are of integers or far beyond 1.

    Args:
        images: An array.
        jitter: Whether their color is jittered: they must be in [0, 1] then, but for
            the overshoot of an interpolation.
    """
    check_image_type(images)
    if images.dtype == "bool" or not images.size:
        return images
    lowest, highest = images.min(), images.max()
    largest = np.maximum(-lowest, highest)
    if not largest <= LARGEST:
        raise ValueError(f"{_WANTED}values up to {largest}")
    # An interpolation may leave [0, 1] so far, which it does little harm to clip.
    if jitter and not (lowest >= -OVERSHOOT and highest <= 1 + OVERSHOOT):
        raise ValueError(f"{_CLIPPED} {lowest} and {highest}")
    return images


def check_label_type(labels: Any) -> None:
    """Raises an error unless labels are numbers."""
    if not has_numbers(labels):
        first = labels.flat[:1].tolist() if isinstance(labels, np.ndarray) else []
        example = f", such as {first[0]!r}" if first else ""
        raise ValueError(
            "Labels must be integers, numbers of classes: number their names, "
            "for instance by `names, labels = np.unique(labels, return_inverse=True)`. "
            f"Received: labels of type {numpy_dtype(labels)}{example}"
        )


def as_targets(labels: np.ndarray, classes: int) -> np.ndarray:
    """Labels `(N,)`, `(N, 1)` or one-hot as float32: `(N, classes)`.

    Of a model with one output, `(N, 1)`: zeros and ones.
    """
    check_label_type(labels)
    shape = labels.shape
    if len(shape) != 1 and (len(shape) != 2 or shape[1] not in (1, classes)):
        raise ValueError(
            f"Labels must be integers (N,) or (N, 1), or one-hot (N, {classes}), as "
            f"the model has {classes} outputs. For other targets, compile the model "
            f"and use `model.fit`. Received: labels of shape {shape}"
        )
    if classes > 1 and len(shape) == 2 and shape[1] == classes:
        return _checked_shares(labels.astype("float32"))
    labels = labels.reshape(-1)
    with np.errstate(invalid="ignore"):
        numbers = labels.astype("int32")
    count = max(classes, 2)
    fits = (numbers == labels) & (numbers >= 0) & (numbers < count)
    if not np.all(fits):
        raise ValueError(
            f"Labels must number the {count} classes of the model from 0. "
            f"Received: {labels[~fits][:8]}"
        )
    if classes > 1:
        return (numbers[:, None] == np.arange(classes)).astype("float32")
    return numbers[:, None].astype("float32")


def _checked_shares(labels: np.ndarray) -> np.ndarray:
    fits = np.all(labels >= 0, axis=1) & (np.abs(labels.sum(axis=1) - 1) < 1e-3)
    if not np.all(fits):
        raise ValueError(
            "One-hot labels must be shares that add up to 1. "
            f"Received: {labels[~fits][:1]}"
        )
    return labels


def checked_weights(weights: np.ndarray) -> np.ndarray:
    """Weights of images as float32."""
    if not has_numbers(weights):
        raise ValueError(
            "Weights of images must be of a type of numbers. "
            f"Received: weights of type {weights.dtype}"
        )
    weights = weights.astype("float32")
    fits = (weights >= 0) & np.isfinite(weights)
    if not np.all(fits):
        raise ValueError(
            "Weights of images must be finite numbers >= 0. "
            f"Received: {weights[~fits][:8]}"
        )
    return weights
