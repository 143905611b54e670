"""What an HDF5 file of rescaled images holds, found and checked without its pixels."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from ._datasets import SIZE_FACTORS

# The splits by the ends of their keys.
SPLITS = {"train": "train", "val": "validation", "test": "test"}
LARGEST = float(np.finfo("float32").max)
# As h5py tells of damage: to the tree, to a name, to a type, to a size.
H5PY_ERRORS = (OSError, RuntimeError, KeyError, TypeError, MemoryError)

Part = TypeVar("Part")
Report = tuple[str, ...]


@dataclass(frozen=True)
class H5File(Generic[Part]):
    """A file, the size factor of test images that its name states, and its splits."""

    path: Path
    factor: float | None
    splits: dict[str, Part]
    report: Report

    def __str__(self) -> str:
        stated = "" if self.factor is None else f", size factor {self.factor}"
        return "\n  ".join([f"{self.path.name}{stated}", *self.report])


@dataclass(frozen=True)
class H5Split:
    """A split of a file: its labels, and its images where they are asked for.

    Args:
        path: the file.
        key: of the images, such as `"x_test"`.
        shape: `(N, H, W, C)`, of the images as they are read.
        channels: where the file has them: `"last"`, `"first"` or `"none"`.
        chunk: images that the file stores, and thus reads, together.
        labels: `(N,)` int32.
    """

    path: Path
    key: str
    shape: tuple[int, ...]
    channels: str
    chunk: int
    labels: np.ndarray

    def read(
        self, start: int, stop: int, low: float = -LARGEST, high: float = LARGEST
    ) -> np.ndarray:
        """Images `start` to `stop`, `(n, H, W, C)` float32.

        A `ValueError` says in which images values are not within `low` and `high`.
        """
        with opened(self.path) as file:
            images = _channels_last(file[self.key][start:stop], self.channels)
            if images.dtype.kind in "ui":
                images = images / np.float32(255)
            images = images.astype("float32", copy=False)
            lows, highs = images.min((1, 2, 3)), images.max((1, 2, 3))
            inside = (lows >= low) & (highs <= high)
            if not inside.all():  # not so either where they are NaN
                raise ValueError(
                    f"{self.key} must be finite, from {low:g} to {high:g}. Found: "
                    f"{lows.min()} to {highs.max()}, with others in the images "
                    f"{start + np.flatnonzero(~inside)[:12]}"
                )
        return images


def _channels_last(images: np.ndarray, channels: str) -> np.ndarray:
    if channels == "none":
        return images[..., None]
    return images.transpose(0, 2, 3, 1) if channels == "first" else images


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The open file; errors of reading it and of what it holds name it."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            yield file
    except H5PY_ERRORS as error:
        raise OSError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def describe_h5(path: str | os.PathLike) -> H5File[H5Split]:
    """What `read_h5` would read, with its labels but without its images."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"`path` must be a file. Received: path={str(path)!r}")
    splits: dict[str, H5Split] = {}
    with opened(path) as file:
        keys, report = _keys_to_read(file)
        for key in keys:
            split, notes = _describe_split(path, file[f"x_{key}"], file[f"y_{key}"])
            splits[SPLITS[key]] = split
            report += notes
    return H5File(path, stated_factor(path.name, "te"), splits, report)


def _keys_to_read(file: Any) -> tuple[list[str], Report]:
    """Which of `SPLITS` are there with images and labels, but for placeholders."""
    shapes: dict[str, Any]
    shapes = {name: tuple(getattr(item, "shape", ())) for name, item in file.items()}
    counts = {key: (shapes.get(f"x_{key}") or (0,))[0] for key in SPLITS}
    pairs = [k for k in SPLITS if shapes.get(f"x_{k}") and shapes.get(f"y_{k}")]
    single = [key for key in pairs if counts[key] == 1 < max(counts.values())]
    keys = [key for key in pairs if key not in single]
    if not keys:
        raise ValueError(
            "Expected x_train and y_train, x_val and y_val, or x_test and y_test. "
            f"Found: {shapes}"
        )
    paired = {f"{letter}_{key}" for key in pairs for letter in "xy"}
    report = [f"{name}: not read" for name in shapes if name not in paired]
    report += [f"x_{key}: one image, a placeholder, left out" for key in single]
    return keys, tuple(report)


def _describe_split(path: Path, x: Any, y: Any) -> tuple[H5Split, Report]:
    x_key, y_key = x.name.lstrip("/"), y.name.lstrip("/")
    channels, shape, report = _layout(x.shape, x.dtype, x_key)
    labels, notes = _labels(y[()], y_key)
    if shape[0] != len(labels):
        raise ValueError(
            f"{x_key} has {shape[0]} images, {y_key} {len(labels)} labels."
        )
    chunk = x.chunks[0] if x.chunks else 1
    split = H5Split(path, x_key, shape, channels, chunk, labels)
    return split, report + notes


def _layout(stored: tuple, dtype: Any, key: str) -> tuple[str, tuple, Report]:
    """Where the channels are, the shape with them last, and what is to be said."""
    channels, shape, report = "last", stored, []
    if len(stored) == 3:
        channels, shape = "none", (*stored, 1)
        report.append(f"{key}: without channels, one was added")
    elif len(stored) == 4 and stored[3] not in (1, 3) and stored[1] in (1, 3):
        channels, shape = "first", (stored[0], *stored[2:], stored[1])
        report.append(f"{key}: channels were first, put last")
    if len(shape) != 4 or shape[3] not in (1, 3) or 0 in shape:
        raise ValueError(f"{key} must be (N, H, W, C). Found: shape {stored}")
    if dtype.kind not in "buif":
        raise ValueError(f"{key} must be real numbers. Found: {dtype}")
    if dtype.kind in "ui":
        report.append(f"{key}: integers, divided by 255")
    size = "x".join(str(n) for n in shape[1:])
    report.append(f"{key}: {shape[0]} images {size}")
    return channels, shape, tuple(report)


def _labels(labels: np.ndarray, key: str) -> tuple[np.ndarray, Report]:
    """Labels `(N,)`, int32."""
    report = []
    if labels.dtype.kind not in "buif":
        raise ValueError(f"{key} must be real numbers. Found: {labels.dtype}")
    if labels.ndim == 2 and labels.shape[1] > 1 and np.all(labels.sum(1) == 1):
        labels = labels.argmax(1)
        report.append(f"{key}: one-hot, made class numbers")
    if labels.ndim not in (1, 2) or labels.size != len(labels):
        raise ValueError(f"{key} must be (N,) or (N, 1). Found: shape {labels.shape}")
    labels = labels.reshape(-1)
    classes = (labels >= 0) & (labels < 2**31) & (np.floor(labels) == labels)
    if not classes.all():
        raise ValueError(
            f"{key} must number classes. Found: {np.unique(labels[~classes])[:12]}"
        )
    report.append(f"{key}: classes {labels.min():g} to {labels.max():g}")
    return labels.astype("int32"), tuple(report)


def stated_factor(name: str, kind: str) -> float | None:
    """The size factor in `…scte0p841…`: the exact one where it is a rounded one.

    `kind` is "te", or "tr" for that of training images in `…sctr1p000…`.
    """
    stated = re.search(rf"sc{kind}(\d+)p(\d+)", name)
    if not stated:
        return None
    value = float(f"{stated[1]}.{stated[2]}")
    near = [factor for factor in SIZE_FACTORS if abs(factor - value) < 1e-3]
    return near[0] if near else value
