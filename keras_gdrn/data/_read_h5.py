"""HDF5 files of rescaled images: what they hold, and their images by number."""

import functools
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_gdrn.data._imresize import OVERSHOOT

# The splits, with the ends of their keys.
KEYS = {"train": "train", "validation": "val", "test": "test"}
# By which h5py reports damage: to the tree, to a name, to a type, to a size.
H5PY_ERRORS = (OSError, RuntimeError, KeyError, TypeError, MemoryError, zlib.error)


def read_h5(path: str | os.PathLike) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Read one of the authors' files of rescaled images.

    The layout is that of MNIST Large Scale, of the same laboratory: the keys `x_train,
    x_val, x_test, y_train, y_val, y_test`, or some of these pairs; images `(N, H, W,
    C)`, labels `(N,)` or `(N, 1)`. In a file of test images, one image takes the place
    of the training images, `(1, H, W, C)` or `(H, W, C)`; it is left out. Values are of
    [0, 1], or of 0 to 255 and then divided by 255: integers always are, floats where
    the first 64 images have values above 1.3. What the cubic carried outside of [0, 1],
    by at most 0.3, is clipped. `h5_report` says what holds for a file.

    Args:
        path: An HDF5 file. Its splits are read into memory; `rescaled_h5` reads a
            folder of such files as it goes.

    Returns:
        Images `(N, H, W, C)`, float32 in [0, 1], and labels `(N,)`, int32, for those of
        "train", "validation" and "test" that the file has.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it is no HDF5 file, or not a complete one.
        ValueError: If it has no pair of keys as above, or if what they name is not
            stored in the file as such numbers.

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
            images = _read_rows(file[self.key], rows)
            kind = images.dtype if images.dtype.kind == "f" else np.dtype("float32")
            images = images / kind.type(self.white)
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


def _read_rows(data: Any, rows: np.ndarray) -> np.ndarray:
    """Rows of a data set, given in ascending order."""
    if data.chunks and data.chunks[0] > 1:
        # Each image of a shuffled batch would be unpacked with all others of its chunk.
        path = Path(data.file.filename)
        return _in_memory(path, data.name, path.stat().st_mtime_ns)[rows]
    start, stop = rows[0], rows[-1] + 1
    if stop - start == len(rows):
        return data[start:stop]
    return np.stack([data[row] for row in rows])  # three times as fast as `data[rows]`


@functools.lru_cache(maxsize=2)  # training and validation
def _in_memory(path: Path, key: str, modified: int) -> np.ndarray:
    with _opened(path) as file:
        return file[key][()]


def describe_h5(path: Path) -> tuple[dict[str, H5Split], list[str]]:
    """The splits of a file, with a report of a line for each array."""
    if not path.is_file():
        raise FileNotFoundError(f"`path` must be a file. Received: path={str(path)!r}")
    splits, report = {}, []
    with _opened(path) as file:
        names = {name: (f"x_{key}", f"y_{key}") for name, key in KEYS.items()}
        stored = {name: [_stored(file, key) for key in names[name]] for name in names}
        pairs = {name: (x, y) for name, (x, y) in stored.items() if x and y}
        if not pairs:
            raise ValueError(
                "Expected x_train and y_train, x_val and y_val, or x_test and y_test. "
                f"Found: {list(file)}"
            )
        # As many axes as any of them has, and then as many images.
        axes, most = max((x.ndim, x.shape[0]) for x, _ in pairs.values())
        for name, (x, y) in pairs.items():
            if x.ndim < axes or x.shape[0] == 1 < most:
                report.append(f"{names[name][0]}: one image, a placeholder, left out")
            else:
                splits[name] = _split(path, names[name], x, y, report)
    return splits, report


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


def _stored(file: Any, key: str) -> Any:
    """The array that `key` names, if any; refuses what is not stored in this file."""
    import h5py

    links, name = file.id.links, key.encode()
    if not links.exists(name):
        return None
    own = links.get_info(name).type == h5py.h5l.TYPE_HARD  # no other is followed
    data: Any = file[key] if own else None
    if (
        not isinstance(data, h5py.Dataset)
        or data.dtype.kind not in "uif"
        or data.is_virtual
        or data.external
        or data.compression not in (None, "gzip", "lzf")
        or data.id.get_space_status() != h5py.h5d.SPACE_STATUS_ALLOCATED
    ):
        raise ValueError(
            f"{key} must be an array of numbers, stored in this file as a whole, "
            f"packed by gzip or lzf at most. Found: {data or 'a link'}"
        )
    return data


def _split(path: Path, keys: tuple, x: Any, y: Any, report: list[str]) -> H5Split:
    """The split of images `x` and labels `y`, if they have the shapes of such."""
    if x.ndim != 4 or x.shape[3] not in (1, 3):
        raise ValueError(f"{keys[0]} must be (N, H, W, C). Found: shape {x.shape}")
    if y.shape not in ((len(x),), (len(x), 1)):
        raise ValueError(
            f"{keys[1]} must be (N,) or (N, 1), for {len(x)} images. "
            f"Found: shape {y.shape}"
        )
    labels = y[()].reshape(-1)
    classes = (labels >= 0) & (labels < 2**31) & (np.floor(labels) == labels)
    if not classes.all():
        raise ValueError(
            f"{keys[1]} must number classes. Found: {np.unique(labels[~classes])[:12]}"
        )
    white = 255 if x.dtype.kind != "f" or np.max(x[:64]) > 1 + OVERSHOOT else 1
    scaled = f", {x.dtype} to 255, divided by it" if white == 255 else ""
    size = "x".join(str(n) for n in x.shape[1:])
    report.append(f"{keys[0]}: {len(x)} images {size}{scaled}")
    report.append(f"{keys[1]}: classes {labels.min():g} to {labels.max():g}")
    return H5Split(path, keys[0], x.shape[1:], white, labels.astype("int32"))
