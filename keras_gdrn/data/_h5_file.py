"""HDF5 files of rescaled images: those of others by number, and new ones."""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_gdrn._checks import check_factor
from keras_gdrn.data._datasets import dataset_info
from keras_gdrn.data._imresize import OVERSHOOT
from keras_gdrn.data._rescaled import RescaledSource, canvas_of
from keras_gdrn.data._source import CHUNK

# The splits, as the keys in a file and as its name have them.
KEYS = {"train": "train", "validation": "val", "test": "test"}
_SHORT = {"train": "tr", "validation": "vl", "test": "te"}


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

    def __str__(self) -> str:
        size = "x".join(map(str, self.image_shape))
        classes = f"classes {self.labels.min()} to {self.labels.max()}"
        scaled = f", up to {self.white}, divided by it" if self.white > 1 else ""
        return f"{self.key}: {len(self)} images {size}, {classes}{scaled}"

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Images `(n, H, W, C)`, float32 in [0, 1], and labels of these numbers."""
        rows, places = np.unique(index, return_inverse=True)  # in ascending order
        with _opened(self.path) as file:
            # Of a chunk of several images, each would be unpacked with all of it.
            chunked = (file[self.key].chunks or (1,))[0] > 1
            data = self._in_memory if chunked else file[self.key]
            # Faster than `data[rows]`.
            images = np.stack([data[row] for row in rows]) / np.float32(self.white)
            low, high = images.min(), images.max()
            if not (low >= -OVERSHOOT and high <= 1 + OVERSHOOT):  # nor if it is NaN
                raise ValueError(
                    f"{self.key} must be from 0 to {self.white}. Found: values from "
                    f"{self.white * low:g} to {self.white * high:g}"
                )
        images = np.clip(images, 0.0, 1.0).astype("float32", copy=False)
        return images[places], self.labels[index]

    @functools.cached_property
    def _in_memory(self) -> np.ndarray:
        with _opened(self.path) as file:
            return file[self.key][()]


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
    splits = splits_of(Path(path))
    return {name: split.rows(np.arange(len(split))) for name, split in splits.items()}


def splits_of(path: Path) -> dict[str, H5Split]:
    """The splits of a file, without the placeholders."""
    with _opened(path) as file:
        found = {s: file[f"x_{k}"] for s, k in KEYS.items() if f"x_{k}" in file}
        if not found:
            raise ValueError(f"must have x_train, x_val or x_test. Found: {list(file)}")
        # One image without the axis of a batch, or none, has fewer axes.
        counts = {s: len(x) if x.ndim == 4 else 1 for s, x in found.items()}
        kept = [s for s in found if counts[s] > 1 or counts[s] == max(counts.values())]
        return {s: _split(path, KEYS[s], found[s], file[f"y_{KEYS[s]}"]) for s in kept}


def _split(path: Path, key: str, x: Any, y: Any) -> H5Split:
    """The split of images `x` and labels `y`, if they have the shapes of such."""
    if x.ndim != 4 or x.shape[3] not in (1, 3) or x.dtype.kind not in "uif":
        raise ValueError(f"x_{key} must be numbers (N, H, W, C). Found: {x}")
    if y.shape not in ((len(x),), (len(x), 1)) or y.dtype.kind not in "uif":
        raise ValueError(f"y_{key} must be a number for each of {x}. Found: {y}")
    labels = y[()].reshape(-1)
    faulty = (labels < 0) | (labels % 1 != 0)
    if faulty.any():
        raise ValueError(f"y_{key} must number classes. Found: {labels[faulty][:12]}")
    white = 255 if x.dtype.kind != "f" or np.max(x[:64]) > 1 + OVERSHOOT else 1
    return H5Split(path, f"x_{key}", x.shape[1:], white, labels.astype("int32"))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The open file; errors of reading it and of what it holds name it."""
    import h5py

    try:
        with h5py.File(path) as file:
            yield file
    except FileNotFoundError:  # names it
        raise
    except Exception as error:  # h5py lets through whatever damage raises
        kind = ValueError if isinstance(error, ValueError) else OSError
        raise kind(f"{path}: {error}") from error


def write_h5(
    folder: str | os.PathLike,
    name: str,
    splits: tuple[str, ...],
    factor: float = 1.0,
    **options,
) -> Path:
    """Write splits of a rescaled data set to one file, as the authors do.

    The file has `x_train, y_train`, `x_val, y_val` and `x_test, y_test`, as far as its
    splits go: images `(N, H, W, C)` float32 in [0, 1] and labels `(N, 1)` int32. It has
    its name, which states what it holds, only when it is complete.

    Args:
        folder: Folder to write into, made if need be.
        name, factor: As for `rescaled`.
        splits: Which of "train", "validation" and "test", of one canvas.
        **options: `canvas`, `limit`, `data_dir` and `download`, as for `rescaled`.

    Returns:
        The path of the file. An existing one is left as it is.

    Raises:
        ValueError, FileNotFoundError: As `rescaled`, and if `splits` is empty, or its
            canvases differ.

    Example:

    >>> write_h5("files", "digits", ("test",), 2**-0.25).name
    'digits_te797_outsize40-40_scte0p841.h5'
    """
    import h5py

    info = dataset_info(name)
    if not set(KEYS) >= set(splits) > set():
        raise ValueError(
            f"`splits` must be some of {tuple(KEYS)}. Received: splits={splits!r}"
        )
    sizes = {canvas_of(info, split, options.get("canvas")) for split in splits}
    if len(sizes) > 1:
        raise ValueError(
            f"`splits` must be of one canvas. Received: {splits} of {name}, {sizes}"
        )
    (height, width), limit = sizes.pop(), options.get("limit")
    counts = [f"{_SHORT[s]}{min(info.size(s), limit or info.size(s))}" for s in splits]
    kind = "scte" if splits == ("test",) else "sctr"
    stated = f"{kind}{check_factor(factor):.3f}".replace(".", "p")
    names = [name, *counts, f"outsize{height}-{width}", f"{stated}.h5"]
    path = Path(folder, "_".join(names))
    if path.exists():  # asked before anything is read
        return path
    sources = {KEYS[s]: RescaledSource(name, s, factor, **options) for s in splits}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with h5py.File(partial, "w") as file:
        for key, source in sources.items():
            shape = (len(source), height, width, info.image_shape[-1])
            x = file.create_dataset(f"x_{key}", shape, "float32")
            for start in range(0, len(source), CHUNK):
                rows = slice(start, start + CHUNK)
                x[rows], _ = source.rows(rows)
            file[f"y_{key}"] = source.arrays[1][:, None]
    return partial.replace(path)
