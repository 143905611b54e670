"""One matrix for the rows and one for the columns, applied to stacks of images."""

import sys
from math import ceil, prod
from typing import Any, Literal, get_args

import numpy as np

Pixels = Literal["float32", "uint8"]

# Values computed at a time in NumPy (16 MB), so that intermediates stay small.
CHUNK = 2**21


def apply_matrices(
    images: Any, rows: np.ndarray, columns: np.ndarray, dtype: Pixels
) -> Any:
    """`rows @ image @ columns.T` for each image and channel, computed in float64.

    Args:
        images: `(H, W)`, `(H, W, C)` or `(N, H, W, C)`, from `as_images`.
        rows: `(height, H)`.
        columns: `(width, W)`.
        dtype: of the result; `"uint8"` is rounded and clipped after each product.

    Returns:
        `(height, width)`, `(height, width, C)` or `(N, height, width, C)`.
    """
    rank = len(images.shape)
    if rank == 2:
        return apply_matrices(images[:, :, None], rows, columns, dtype)[:, :, 0]
    if rank == 3:
        return apply_matrices(images[None], rows, columns, dtype)[0]
    if is_tensor(images):
        import tensorflow as tf

        images = tf.cast(images, "float64")
        return tf.cast(_multiply(tf, images, rows, columns, dtype), dtype)
    shape = (len(images), len(rows), len(columns), images.shape[-1])
    result = np.empty(shape, dtype)
    count = ceil(CHUNK / prod(shape[1:]))
    for start in range(0, len(images), count):
        chunk = images[start : start + count].astype("float64")
        result[start : start + count] = _multiply(np, chunk, rows, columns, dtype)
    return result


def _multiply(
    xp: Any, images: Any, rows: np.ndarray, columns: np.ndarray, dtype: Pixels
) -> Any:
    """Both products, `(N, H, W, C)` float64; `xp` is `numpy` or `tensorflow`."""
    # Each product is one for all images: where BLAS shares a product between threads,
    # one for each image was up to 25 times slower (measured on two busy cores).
    images = xp.tensordot(images, rows, ([1], [1]))  # image, column, channel, row
    if dtype == "uint8":
        images = _to_levels(xp, images)
    images = xp.tensordot(images, columns, ([1], [1]))  # image, channel, row, column
    if dtype == "uint8":
        images = _to_levels(xp, images)
    return xp.transpose(images, (0, 2, 3, 1))


def _to_levels(xp: Any, values: Any) -> Any:
    """Whole levels 0 to 255; after clipping, half up is half away from zero."""
    return xp.floor(xp.minimum(xp.maximum(values, 0.0), 255.0) + 0.5)


def as_images(images: Any, dtype: Pixels) -> Any:
    """`images` as an array, or the tensor it is, fit for `apply_matrices`.

    Raises:
        TypeError: if the pixels are no real numbers.
        ValueError: if the rank is not 2, 3 or 4, an axis is empty or has, but for the
            first of four, an unknown size, or `dtype` does not suit the images.
    """
    if not is_tensor(images):
        images = np.asarray(images)
    _check_shape(images)
    _check_dtype(images, dtype)
    return images


def _check_shape(images: Any) -> None:
    shape = images.shape
    # The shape of a tensor of unknown rank has no length.
    if getattr(shape, "rank", 0) is None or len(shape) not in (2, 3, 4):
        raise ValueError(
            "`images` must have shape (H, W), (H, W, C) or (N, H, W, C). "
            f"Received: images.shape={shape}"
        )
    if None in tuple(shape[1:] if len(shape) == 4 else shape):
        raise ValueError(
            "`images` must have a height, width and channels that are known when the "
            f"graph is built. Received: images.shape={shape}"
        )
    if 0 in tuple(shape):
        raise ValueError(f"`images` must not be empty. Received: images.shape={shape}")


def _check_dtype(images: Any, dtype: Pixels) -> None:
    pixels = images.dtype.as_numpy_dtype if is_tensor(images) else images.dtype
    pixels = np.dtype(pixels)
    if pixels.kind not in "biuf":
        raise TypeError(
            f"`images` must hold real numbers. Received: images.dtype={pixels}"
        )
    if dtype not in get_args(Pixels) or (dtype == "uint8" and pixels != "uint8"):
        raise ValueError(
            "`dtype` must be 'float32', or 'uint8' where the images are of uint8. "
            f"Received: dtype={dtype!r} with images.dtype={pixels}"
        )


def image_size(images: Any) -> tuple[int, int]:
    """Height and width of `(H, W)`, `(H, W, C)` or `(N, H, W, C)`."""
    first = 1 if len(images.shape) == 4 else 0
    return images.shape[first], images.shape[first + 1]


def is_tensor(images: Any) -> bool:
    """Whether `images` is a TensorFlow tensor; does not import TensorFlow."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and isinstance(images, tensorflow.Tensor)
