"""One matrix for the rows and one for the columns, applied to stacks of images."""

import sys
from math import prod
from typing import Any

import numpy as np

# Values read or computed at a time in NumPy: 16 MB, unless one image has more.
CHUNK = 2**21


def apply_matrices(images: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    """`rows @ image @ columns.T` for each image and channel, computed in float64.

    Images are `(H, W)`, `(H, W, C)` or `(N, H, W, C)`; so is the result, in float32.
    """
    rank = len(images.shape)
    if rank == 2:
        return apply_matrices(images[:, :, None], rows, columns)[:, :, 0]
    if rank == 3:
        return apply_matrices(images[None], rows, columns)[0]
    if is_tensor(images):
        import tensorflow as tf

        images = tf.cast(images, "float64")
        return tf.cast(_multiply(tf, images, rows, columns), "float32")
    shape = (len(images), len(rows), len(columns), images.shape[-1])
    result = np.empty(shape, "float32")
    count = max(1, CHUNK // max(prod(shape[1:]), prod(images.shape[1:])))
    for start in range(0, len(images), count):
        chunk = images[start : start + count].astype("float64")
        result[start : start + count] = _multiply(np, chunk, rows, columns)
    return result


def _multiply(xp: Any, images: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    """Both products, `(N, H, W, C)` float64; `xp` is `numpy` or `tensorflow`."""
    # One product for all images: with a multithreaded BLAS, one for each image was up
    # to 25 times slower (measured on two busy cores).
    images = xp.tensordot(images, rows, ([1], [1]))  # image, column, channel, row
    images = xp.tensordot(images, columns, ([1], [1]))  # image, channel, row, column
    return xp.transpose(images, (0, 2, 3, 1))


def as_images(images: Any) -> Any:
    """`images` as an array or a tensor, checked for `apply_matrices`."""
    if not is_tensor(images):
        images = np.asarray(images)
    # The shape of a tensor of unknown rank has no length.
    known = getattr(images.shape, "rank", 0) is not None
    shape = tuple(images.shape) if known else ()
    kind = getattr(images.dtype, "as_numpy_dtype", images.dtype)
    if (
        len(shape) not in (2, 3, 4)
        or None in (shape[1:] if len(shape) == 4 else shape)
        or 0 in shape
        or np.dtype(kind).kind not in "biuf"
    ):
        raise ValueError(
            "`images` must be real numbers (H, W), (H, W, C) or (N, H, W, C), not "
            "empty, and in a graph H, W and C must be known. "
            f"Received: {images.dtype} of shape {images.shape}"
        )
    return images


def is_tensor(images: Any) -> bool:
    """Whether `images` is a TensorFlow tensor; does not import TensorFlow."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and isinstance(images, tensorflow.Tensor)
