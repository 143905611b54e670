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

    The file has `x_train, x_val, x_test` or some of them, `(N, H, W, C)`, and `y_train,
    y_val, y_test`, `(N,)` or `(N, 1)`. A split of at most one image is skipped as a
    placeholder if another split has more. Values are from 0 to 1, or from 0 to 255 and
    then divided by 255; the range is detected for each split. Values outside of it,
    from resizing, are clipped.

    Args:
        path: Path of the file.
        limit: Read only the first `limit` images of each split.

    Returns:
        A dictionary from "train", "validation" and "test", as far as the file has them,
        to images `(N, H, W, C)`, float32 in [0, 1], and labels `(N,)`, int32. `fit` and
        the functions of `keras_gdrn.evaluation` take these pairs.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it is not a complete HDF5 file.
        ValueError: If it has another layout or other values.

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
    except FileNotFoundError:  # its message names the file
        raise
    except Exception as error:  # damage can raise any error in h5py
        kind = ValueError if isinstance(error, ValueError) else OSError
        raise kind(f"{Path(path)}: {error}") from error


def _splits(file: Any) -> list[str]:
    """The splits of a file, without the placeholders."""
    found = {s: file[f"x_{k}"] for s, k in KEYS.items() if f"x_{k}" in file}
    if not found:
        raise ValueError(f"must have x_train, x_val or x_test. Received: {list(file)}")
    # A placeholder may lack the batch axis.
    counts = {s: len(x) if x.ndim == 4 else 1 for s, x in found.items()}
    return [s for s in found if counts[s] > 1 or counts[s] == max(counts.values())]


def _pair(file: Any, key: str, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The images and labels of a split, checked."""
    x, y = file[f"x_{key}"], file[f"y_{key}"]
    if x.ndim != 4 or x.shape[3] not in (1, 3) or x.dtype.kind not in "buif":
        raise ValueError(f"x_{key} must be numbers (N, H, W, C). Received: {x}")
    if y.shape not in ((len(x),), (len(x), 1)) or y.dtype.kind not in "uif":
        raise ValueError(f"y_{key} must be a number for each of {x}. Received: {y}")
    labels = y[:limit].reshape(-1)
    bad = (labels < 0) | (labels % 1 != 0)
    if bad.any():
        raise ValueError(f"y_{key} must be class numbers. Received: {labels[bad][:12]}")
    images = x[:limit].astype("float32", copy=False)
    try:
        images /= white(images)
    except ValueError as error:
        raise ValueError(f"x_{key}: {error}") from None
    return np.clip(images, 0.0, 1.0, out=images), labels.astype("int32")
