"""HDF5 files of rescaled images, such as the authors'."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_gdrn._checks import check_count
from keras_gdrn._pixels import white

# The splits, and their keys in a file.
KEYS = {"train": "train", "validation": "val", "test": "test"}


def read_h5(
    path: str | os.PathLike, limit: int | None = None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Read a file of rescaled images, such as the authors', into memory.

    It has `x_train, x_val, x_test` or some of them, `(N, H, W, C)`, and `y_train,
    y_val, y_test`, `(N,)` or `(N, 1)`. Where others have more, one image, with or
    without its first axis, or none is a placeholder and left out. Values are of 0 to 1,
    or of 0 to 255 and then divided by 255: which they are is seen from all images of a
    split, as `models.Preprocess` sees it. What resizing has carried outside of the
    range is clipped.

    Args:
        path: The file.
        limit: Take only the first so many images of each split.

    Returns:
        Images `(N, H, W, C)`, float32 in [0, 1], and labels `(N,)`, int32, for those of
        "train", "validation" and "test" that the file has: what `fit` and the functions
        of `keras_gdrn.evaluation` take.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it is no HDF5 file, or not a complete one.
        ValueError: If it is of another layout or has other values.

    Example:

    >>> images, labels = read_h5("cifar10_te10000_outsize64-64_scte0p841.h5")["test"]
    >>> images.shape
    (10000, 64, 64, 3)
    """
    import h5py

    check_count("limit", limit)
    try:
        with h5py.File(path) as file:
            return {s: _pair(file, KEYS[s], limit) for s in _splits(file)}
    except FileNotFoundError:  # names it
        raise
    except Exception as error:  # h5py lets through whatever damage raises
        kind = ValueError if isinstance(error, ValueError) else OSError
        raise kind(f"{Path(path)}: {error}") from error


def _splits(file: Any) -> list[str]:
    """The splits of a file, without the placeholders."""
    found = {s: file[f"x_{k}"] for s, k in KEYS.items() if f"x_{k}" in file}
    if not found:
        raise ValueError(f"must have x_train, x_val or x_test. Found: {list(file)}")
    # One image without the axis of a batch, or none, has fewer axes.
    counts = {s: len(x) if x.ndim == 4 else 1 for s, x in found.items()}
    return [s for s in found if counts[s] > 1 or counts[s] == max(counts.values())]


def _pair(file: Any, key: str, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The images and the labels of a split, if they are such."""
    x, y = file[f"x_{key}"], file[f"y_{key}"]
    if x.ndim != 4 or x.shape[3] not in (1, 3) or x.dtype.kind not in "buif":
        raise ValueError(f"x_{key} must be numbers (N, H, W, C). Found: {x}")
    if y.shape not in ((len(x),), (len(x), 1)) or y.dtype.kind not in "uif":
        raise ValueError(f"y_{key} must be a number for each of {x}. Found: {y}")
    labels = y[:limit].reshape(-1)
    faulty = (labels < 0) | (labels % 1 != 0)
    if faulty.any():
        raise ValueError(f"y_{key} must number classes. Found: {labels[faulty][:12]}")
    images = x[:limit].astype("float32", copy=False)
    try:
        images /= white(images)
    except ValueError as error:
        raise ValueError(f"x_{key}: {error}") from None
    return np.clip(images, 0.0, 1.0, out=images), labels.astype("int32")
