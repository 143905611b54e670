"""Which images are fit for training."""

from typing import Any

from keras_gdrn.data._imresize import OVERSHOOT
from keras_gdrn.training._tensors import (
    has_numbers,
    namespace,
    numpy_dtype,
    required,
)

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


def check_image_type(images: Any) -> None:
    """Raises an error unless images are of floats or booleans.

    Args:
        images: An array, a tensor or the specification of one.
    """
    if not has_numbers(images) or numpy_dtype(images).kind in "iu":
        raise ValueError(f"{_WANTED}images of type {numpy_dtype(images).name}")


def checked_images(images: Any, jitter: bool = False) -> Any:
    """The images as they are, or an error if they are of integers or far beyond 1.

    Args:
        images: An array or tensor.
        jitter: Whether their color is jittered: they must be in [0, 1] then, but for
            the overshoot of an interpolation.

    Raises:
        ValueError: For integers, and for values that are known at once.
        tf.errors.InvalidArgumentError: For the values, in a pipeline.
    """
    check_image_type(images)
    if images.dtype == "bool" or 0 in tuple(images.shape):
        return images
    xp = namespace(images)
    lowest, highest = xp.min(images), xp.max(images)
    largest = xp.maximum(-lowest, highest)  # of none, -inf
    images = required(images, largest <= LARGEST, f"{_WANTED}values up to", largest)
    if not jitter:
        return images
    # An interpolation may leave [0, 1] so far, which it does little harm to clip.
    fits = (lowest >= -OVERSHOOT) & (highest <= 1 + OVERSHOOT)
    return required(images, fits, _CLIPPED, xp.stack([lowest, highest]))
