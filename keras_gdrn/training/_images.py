"""Which images are fit for training."""

from typing import Any

import numpy as np

from keras_gdrn.training._tensors import namespace, required

# Digits of scikit-learn reach 16, images of 8 bits 255. Standardized images stay
# below this, even where one pixel in 200 is ink.
LARGEST = 15.0

_WANTED = (
    "Images must be floats in [0, 1], or standardized: divide images of 8 bits by 255 "
    "(`images.astype('float32') / 255`). Received: "
)


def check_image_type(dtype: Any) -> None:
    """Raises an error if images are of an integer type.

    Args:
        dtype: Type of the pixels, TensorFlow's or NumPy's.
    """
    dtype = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
    if dtype.kind in "iu":
        raise ValueError(f"{_WANTED}images of type {dtype.name}")


def checked_images(images: Any) -> Any:
    """The images as they are, or an error if they are of integers or far beyond 1.

    Args:
        images: An array or tensor.

    Raises:
        ValueError: For integers, and for values that are known at once.
        tf.errors.InvalidArgumentError: For the values, in a pipeline.
    """
    check_image_type(images.dtype)
    if images.dtype == "bool" or 0 in tuple(images.shape):
        return images
    xp = namespace(images)
    largest = xp.max(xp.abs(images))
    return required(images, largest <= LARGEST, f"{_WANTED}values up to", largest)
