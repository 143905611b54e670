"""HDF5 files of rescaled images: what they hold, and their images by number."""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_gdrn.data._imresize import OVERSHOOT

# The splits, with the ends of their keys.
KEYS = {"train": "train", "validation": "val", "test": "test"}


def read_h5(path: str | os.PathLike) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Read a file of rescaled images, such as the authors', into memory.

    Args:
        path: An HDF5 file as described at `rescaled_h5`, which reads a folder of them.

    Returns:
        Images `(N, H, W, C)`, float32 in [0, 1], and labels `(N,)`, int32, for those of
        "train", "validation" and "test" that the file has.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it is no HDF5 file, or not a complete one.
        ValueError: If it is of another layout or has other values.

    Example:

    >>> images, labels = read_h5("cifar10_te10000_outsize64-64_scte0p841.h5")["test"]
    >>> images.shape
    (10000, 64, 64, 3)
    """
    splits, _ = describe_h5(Path(path))
    return {name: split.rows(np.arange(len(split))) for name, split in splits.items()}


@dataclass(frozen=True)
class H5Split:
    """A split of a file: its labels, and its images where they are asked for."""

    path: Path
    key: str  # of the images, such as "x_test"
    image_shape: tuple[int, int, int]  # (H, W, C)
    white: int  # the stored value that becomes 1
    labels: np.ndarray  # (N,) int32

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Images `(n, H, W, C)`, float32 in [0, 1], and labels of these numbers."""
        rows, places = np.unique(index, return_inverse=True)
        with _opened(self.path) as file:
            images = self._stored(file[self.key], rows) / np.float32(self.white)
            low, high = images.min((1, 2, 3)), images.max((1, 2, 3))
            inside = (low >= -OVERSHOOT) & (high <= 1 + OVERSHOOT)
            if not inside.all():  # nor is it where they are NaN
                raise ValueError(
                    f"{self.key} must be finite, from 0 to {self.white}. Found: "
                    f"{self.white * low.min():g} to {self.white * high.max():g}, with "
                    f"others in the images {rows[~inside][:12]}"
                )
        images = np.clip(images, 0.0, 1.0).astype("float32", copy=False)
        return images[places], self.labels[index]

    def _stored(self, data: Any, rows: np.ndarray) -> np.ndarray:
        """Images of numbers in ascending order."""
        if data.chunks and data.chunks[0] > 1:
            # Each image of a shuffled batch would be unpacked with all of its chunk.
            return self._in_memory[rows]
        if rows[-1] - rows[0] == len(rows) - 1:
            return data[rows[0] : rows[-1] + 1]
        return np.stack([data[row] for row in rows])  # faster than `data[rows]`

    @functools.cached_property
    def _in_memory(self) -> np.ndarray:
        with _opened(self.path) as file:
            return file[self.key][()]


def describe_h5(path: Path) -> tuple[dict[str, H5Split], list[str]]:
    """The splits of a file, with a report of a line for each array."""
    if not path.is_file():
        raise FileNotFoundError(f"`path` must be a file. Received: path={str(path)!r}")
    splits, report = {}, []
    with _opened(path) as file:
        found = {
            name: key
            for name, key in KEYS.items()
            if {f"x_{key}", f"y_{key}"} <= set(file)
        }
        if not found:
            raise ValueError(
                "Expected x_train and y_train, x_val and y_val, or x_test and y_test. "
                f"Found: {list(file)}"
            )
        images = {name: _array(file, f"x_{key}") for name, key in found.items()}
        # As many axes as any of them has, and then as many images.
        axes, most = max((x.ndim, x.shape[0]) for x in images.values())
        for name, x in images.items():
            if x.ndim < axes or x.shape[0] == 1 < most:
                report.append(f"x_{KEYS[name]}: one image, a placeholder, left out")
            else:
                splits[name] = _split(
                    path, KEYS[name], x, _array(file, f"y_{KEYS[name]}")
                )
                report += _lines(splits[name], x.dtype)
    return splits, report


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The open file; errors of reading it and of what it holds name it."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            yield file
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except Exception as error:  # h5py lets through whatever damage raises
        raise OSError(f"{path} cannot be read: {error}") from error


def _array(file: Any, key: str) -> Any:
    """The array of a key; refuses what is not stored in this file as a whole."""
    import h5py

    data = file[key]
    if (
        not isinstance(data, h5py.Dataset)
        or data.dtype.kind not in "uif"
        or data.file.filename != file.filename  # a link
        or data.is_virtual
        or data.external
        or data.id.get_space_status() != h5py.h5d.SPACE_STATUS_ALLOCATED
    ):
        raise ValueError(
            f"{key} must be an array of numbers, stored in this file as a whole. "
            f"Found: {data}"
        )
    return data


def _split(path: Path, key: str, x: Any, y: Any) -> H5Split:
    """The split of images `x` and labels `y`, if they have the shapes of such."""
    if x.ndim != 4 or x.shape[3] not in (1, 3):
        raise ValueError(f"x_{key} must be (N, H, W, C). Found: shape {x.shape}")
    if y.shape not in ((len(x),), (len(x), 1)):
        raise ValueError(
            f"y_{key} must be (N,) or (N, 1), for {len(x)} images. "
            f"Found: shape {y.shape}"
        )
    labels = y[()].reshape(-1)
    classes = (labels >= 0) & (labels < 2**31) & (np.floor(labels) == labels)
    if not classes.all():
        raise ValueError(
            f"y_{key} must number classes. Found: {np.unique(labels[~classes])[:12]}"
        )
    white = 255 if x.dtype.kind != "f" or np.max(x[:64]) > 1 + OVERSHOOT else 1
    return H5Split(path, f"x_{key}", x.shape[1:], white, labels.astype("int32"))


def _lines(split: H5Split, dtype: Any) -> list[str]:
    scaled = f", {dtype} to 255, divided by it" if split.white == 255 else ""
    size, labels = "x".join(map(str, split.image_shape)), split.labels
    return [
        f"{split.key}: {len(split)} images {size}{scaled}",
        f"y{split.key[1:]}: classes {labels.min()} to {labels.max()}",
    ]
