"""Reading HDF5 files of rescaled images, found and checked before any pixel is read."""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from keras_gdrn.data._stored_h5 import ROOM, check_stored, stored_in, unpacked
from keras_gdrn.data._write_h5 import SPLITS, stated_factor

LARGEST = float(np.finfo("float32").max)
# By which h5py reports damage: to the tree, to a name, to a type, to a size.
H5PY_ERRORS = (OSError, RuntimeError, KeyError, TypeError, MemoryError, zlib.error)


@dataclass(frozen=True)
class H5Images:
    """What was found in a file; `print` it for the report.

    Args:
        path: The file.
        factor: The size factor that the name of the file states, or None.
        splits: Images `(N, H, W, C)` float32 and labels `(N,)` int32, for those of
            "train", "validation" and "test" that the file has.
        report: A line for each split, and for each departure from what was expected.
    """

    path: Path
    factor: float | None
    splits: dict[str, Any]
    report: tuple[str, ...]

    def __str__(self) -> str:
        stated = "" if self.factor is None else f", size factor {self.factor}"
        return "\n  ".join([f"{self.path.name}{stated}", *self.report])


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
        path: An HDF5 file. Its splits are read into memory; `rescaled_h5` reads a
            folder of such files as it goes.

    Returns:
        An `H5Images`.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it is no HDF5 file, or not a complete one.
        ValueError: If it has no pair of keys as above, or images or labels that have
            other shapes, differ in number, are not finite or number no classes; if
            they are links, lie in other files, were declared but never written, or
            take memory out of proportion to the file or to the images.

    Example:

    >>> file = read_h5("cifar10_te10000_outsize64-64_scte0p841.h5")
    >>> images, labels = file.splits["test"]
    >>> images.shape
    (10000, 64, 64, 3)
    """
    file = describe_h5(path)
    splits, report = {}, list(file.report)
    for name, split in file.splits.items():
        images = split.read(0, split.shape[0])
        splits[name] = images, split.labels
        low, high = images.min(), images.max()
        outside = low < 0 or high > 1
        note = ", outside [0, 1] and left as they are" if outside else ""
        report.append(f"{split.key}: values {low:g} to {high:g}{note}")
    return replace(file, splits=splits, report=tuple(report))


@dataclass(frozen=True)
class H5Split:
    """A split of a file: its labels, and its images where they are asked for."""

    path: Path
    key: str  # of the images, such as "x_test"
    shape: tuple[int, ...]  # (N, H, W, C), as they are read
    chunk: int  # images that the file stores, and thus reads, together
    labels: np.ndarray  # (N,) int32

    def read(
        self, start: int, stop: int, low: float = -LARGEST, high: float = LARGEST
    ) -> np.ndarray:
        """Images `start` to `stop`, `(n, H, W, C)` float32.

        A `ValueError` says in which images values are not within `low` and `high`.
        """
        with _opened(self.path) as file:
            stored = unpacked(stored_in(file, self.key), self.key, start, stop)
            images, _ = _channels_last(stored)
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


def describe_h5(path: str | os.PathLike) -> H5Images:
    """What `read_h5` would read, with an `H5Split` for each split."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"`path` must be a file. Received: path={str(path)!r}")
    with _opened(path) as file:
        keys, report = _keys_to_read(file)
        splits = {SPLITS[key]: _split(path, file, key, report) for key in keys}
    return H5Images(path, stated_factor(path.name, "te"), splits, tuple(report))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The open file; errors of reading it and of what it holds name it."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            yield file
    except H5PY_ERRORS as error:
        raise OSError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _keys_to_read(file: Any) -> tuple[list[str], list[str]]:
    """The `SPLITS` that have images and labels, without placeholders; and a report."""
    shapes = {
        name: getattr(stored_in(file, name), "shape", None) or () for name in file
    }
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
    return keys, report


def _split(path: Path, file: Any, key: str, report: list[str]) -> H5Split:
    x, y = file[f"x_{key}"], file[f"y_{key}"]
    shape = _image_shape(x, f"x_{key}", report)
    labels = _labels(_stored_labels(x, y, key), f"y_{key}", report)
    chunk = x.chunks[0] if x.chunks else 1
    return H5Split(path, f"x_{key}", shape, chunk, labels)


def _channels_last(images: np.ndarray) -> tuple[np.ndarray, str | None]:
    """Images `(N, H, W, C)`, and what was done so that they are."""
    if images.ndim == 3:
        return images[..., None], "without channels, one was added"
    if images.ndim == 4 and images.shape[3] not in (1, 3) and images.shape[1] in (1, 3):
        return images.transpose(0, 2, 3, 1), "channels were first, put last"
    return images, None


def _image_shape(stored: Any, key: str, report: list[str]) -> tuple[int, ...]:
    """The shape with the channels last."""
    like = np.broadcast_to(0.0, stored.shape)  # takes no memory
    images, change = _channels_last(like)
    shape = images.shape
    if change:
        report.append(f"{key}: {change}")
    if len(shape) != 4 or shape[3] not in (1, 3) or 0 in shape:
        raise ValueError(f"{key} must be (N, H, W, C). Found: shape {stored.shape}")
    check_stored(stored, key)
    if stored.dtype.kind in "ui":
        report.append(f"{key}: integers, divided by 255")
    size = "x".join(str(n) for n in shape[1:])
    report.append(f"{key}: {shape[0]} images {size}")
    return shape


def _stored_labels(x: Any, y: Any, key: str) -> np.ndarray:
    """The labels `(N,)` or `(N, classes)`, read where they can be those of `x`."""
    check_stored(y, f"y_{key}")
    if y.shape[0] != x.shape[0]:
        raise ValueError(
            f"x_{key} has {x.shape[0]} images, y_{key} {y.shape[0]} labels. "
            f"Found: shape {y.shape}"
        )
    if len(y.shape) > 2 or y.nbytes > max(ROOM, x.nbytes):
        raise ValueError(
            f"y_{key} must be (N,), (N, 1) or one-hot, of at most {ROOM} bytes or as "
            f"many as the images. Found: shape {y.shape} of {y.nbytes} bytes"
        )
    return unpacked(y, f"y_{key}", 0, len(y))


def _labels(labels: np.ndarray, key: str, report: list[str]) -> np.ndarray:
    """Labels `(N,)`, int32."""
    ones = labels.ndim == 2 and np.isin(labels, (0, 1)).all()
    if ones and labels.shape[1] > 1 and np.all(labels.sum(1) == 1):
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
    return labels.astype("int32")
