"""Reading the HDF5 files of the authors of the rescaled data sets."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._datasets import SIZE_FACTORS

# The splits by the ends of their keys.
_SPLITS = {"train": "train", "val": "validation", "test": "test"}


@dataclass(frozen=True)
class H5Images:
    """What was found in a file; `print` it for the report.

    Args:
        path: the file.
        factor: the size factor that the name of the file states, or None.
        splits: images `(N, H, W, C)` float32 and labels `(N,)` int32, for those of
            "train", "validation" and "test" that the file has.
        report: a line for each split, and for each departure from what was expected.
    """

    path: Path
    factor: float | None
    splits: dict[str, tuple[np.ndarray, np.ndarray]]
    report: tuple[str, ...]

    def __str__(self) -> str:
        title = f"{self.path.name}, size factor {self.factor}"
        return "\n  ".join([title, *self.report])


def read_h5(path: str | os.PathLike) -> H5Images:
    """Read one of the authors' files of rescaled images, and say what it holds.

    Expected are the keys `x_train, x_val, x_test, y_train, y_val, y_test`, or some of
    these pairs; float images `(N, H, W, C)`; labels `(N,)` or `(N, 1)`; a name that
    states the size factor, such as `…_scte0p841.h5`; and, where the file is one of a
    test set, a single training image that only fills the place and is left out. This
    is inferred from the MNIST Large Scale files of the same laboratory. So what is
    found is checked and reported, and values stay as they are, except that integer
    pixels are divided by 255, channels are put last and one-hot labels made integers.

    Args:
        path: an HDF5 file. Its splits are read into memory.

    Returns:
        An `H5Images`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it has no pair of keys as above, or images or labels that have
            other shapes, differ in number, are not finite or number no classes.

    Example:

    >>> file = read_h5("cifar10_te10000_outsize64-64_scte0p841.h5")
    >>> images, labels = file.splits["test"]
    >>> images.shape
    (10000, 64, 64, 3)
    """
    import h5py

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"`path` must be a file. Received: path={str(path)!r}")
    report: list[str] = []
    with h5py.File(path, "r") as file:
        splits = _read_splits(file, report)
    return H5Images(path, _factor(path.name), splits, tuple(report))


def _read_splits(file: Any, report: list[str]) -> dict:
    splits = {}
    for key in _keys_to_read(file, report):
        images = _images(file[f"x_{key}"][()], f"x_{key}", report)
        labels = _labels(file[f"y_{key}"][()], f"y_{key}", report)
        if len(images) != len(labels):
            raise ValueError(
                f"x_{key} has {len(images)} images, y_{key} {len(labels)} labels."
            )
        splits[_SPLITS[key]] = images, labels
    return splits


def _keys_to_read(file: Any, report: list[str]) -> list[str]:
    """Which of `_SPLITS` are there with images and labels, but for placeholders."""
    shapes: dict[str, Any]
    shapes = {name: tuple(getattr(item, "shape", ())) for name, item in file.items()}
    pairs = [k for k in _SPLITS if shapes.get(f"x_{k}") and shapes.get(f"y_{k}")]
    if not pairs:
        raise ValueError(
            "Expected x_train and y_train, x_val and y_val, or x_test and y_test. "
            f"Found in {file.filename}: {shapes}"
        )
    paired = {f"{letter}_{key}" for key in pairs for letter in "xy"}
    report += [f"{name}: not read" for name in shapes if name not in paired]
    most = max(shapes[f"x_{key}"][0] for key in pairs)
    single = [key for key in pairs if shapes[f"x_{key}"][0] == 1 < most]
    report += [f"x_{key}: one image, a placeholder, left out" for key in single]
    return [key for key in pairs if key not in single]


def _images(images: np.ndarray, key: str, report: list[str]) -> np.ndarray:
    """Float32 images, channels last."""
    if images.ndim == 3:
        images = images[..., None]
        report.append(f"{key}: without channels, one was added")
    if images.ndim == 4 and images.shape[3] not in (1, 3) and images.shape[1] in (1, 3):
        images = images.transpose(0, 2, 3, 1)
        report.append(f"{key}: channels were first, put last")
    if images.ndim != 4 or images.shape[3] not in (1, 3):
        raise ValueError(f"{key} must be (N, H, W, C). Found: shape {images.shape}")
    if images.dtype.kind in "ui":
        images = images / np.float32(255)
        report.append(f"{key}: integers, divided by 255")
    images = images.astype("float32", copy=False)
    low, high = images.min(), images.max()
    if not np.isfinite(low + high):
        raise ValueError(f"{key} must be finite. Found: values {low} to {high}")
    if low < 0 or high > 1:
        report.append(f"{key}: values leave [0, 1], and are left as they are")
    shape = "x".join(str(n) for n in images.shape[1:])
    report.append(f"{key}: {len(images)} images {shape}, values {low:g} to {high:g}")
    return images


def _labels(labels: np.ndarray, key: str, report: list[str]) -> np.ndarray:
    """Labels `(N,)`, int32."""
    if labels.ndim == 2 and labels.shape[1] > 1 and np.all(labels.sum(1) == 1):
        labels = labels.argmax(1)
        report.append(f"{key}: one-hot, made class numbers")
    if labels.ndim not in (1, 2) or labels.size != len(labels):
        raise ValueError(f"{key} must be (N,) or (N, 1). Found: shape {labels.shape}")
    classes, labels = labels.reshape(-1), labels.reshape(-1).astype("int32")
    if np.any(classes != labels) or labels.min() < 0:
        raise ValueError(f"{key} must number classes. Found: {np.unique(classes)[:12]}")
    report.append(f"{key}: classes {labels.min()} to {labels.max()}")
    return labels


def _factor(name: str) -> float | None:
    """The size factor in `…scte0p841…`: the exact one where it is a rounded one."""
    stated = re.search(r"scte(\d+)p(\d+)", name)
    if not stated:
        return None
    value = float(f"{stated[1]}.{stated[2]}")
    near = [factor for factor in SIZE_FACTORS if abs(factor - value) < 1e-3]
    return near[0] if near else value
