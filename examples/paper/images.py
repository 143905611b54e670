"""Where images come from: TensorFlow Datasets, packed files, or HDF5 files."""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from keras_gdrn.data import DATASETS, read_h5, rescale, rescaled, rescaled_arrays

# A split, a size factor and a canvas.
Part = tuple[str, float, int | tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Source:
    """Where images come from: only from HDF5 files if there is a folder of them."""

    data_dir: str | None = None  # of TensorFlow Datasets, or of packed files
    download: bool = False
    h5: Path | None = None  # of several data sets, with a subfolder for each

    def data(
        self, dataset: str, split: str, factor: float = 1.0, **options: Any
    ) -> Any:
        """What `fit` takes, with the options of `rescaled`; HDF5 files are arrays."""
        if not self.h5:
            options |= {"data_dir": self.data_dir, "download": self.download}
            return rescaled(dataset, split, factor, **options)
        canvas, limit = options.get("canvas"), options.get("limit")
        return from_h5(self.folder(dataset), dataset, split, factor, canvas, limit)

    def arrays(
        self, dataset: str, split: str, factor: float, limit: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first images and labels, as `rescaled_arrays`."""
        if self.h5:
            return self.data(dataset, split, factor, limit=limit)
        where = {"data_dir": self.data_dir, "download": self.download}
        return rescaled_arrays(dataset, split, factor, limit=limit, **where)

    def folder(self, dataset: str) -> Path:
        own = self.h5 / dataset
        return own if own.is_dir() else self.h5

    def batches(self, *which: Any, batch_size: int, **options: Any) -> Iterable[tuple]:
        """The same, batch by batch."""
        data = self.data(*which, batch_size=batch_size, **options)
        if not isinstance(data, tuple):
            return data
        starts = range(0, len(data[1]), batch_size)
        return (tuple(array[s : s + batch_size] for array in data) for s in starts)

    def look_up(self, dataset: str, parts: Iterable[Part]) -> str | list[str]:
        """Checks that there are images; returns what identifies them."""
        for split, factor, canvas in parts:
            self.data(dataset, split, factor, canvas=canvas, limit=1)
        if not self.h5:
            return "TensorFlow Datasets or scikit-learn"  # packed or not
        files = h5_files(self.folder(dataset))
        return [f"{file.name}, {file.stat().st_size} bytes" for file in files]


def h5_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.h5"))


def from_h5(
    folder: Path, dataset: str, split: str, factor: float, canvas: Any, limit: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The center of the images, and the labels, of one split or several joined by +."""
    found = [(file_of(folder, part, factor), part) for part in split.split("+")]
    pairs = [read_h5(file, limit)[part] for file, part in found]
    for (file, _), (images, _) in zip(found, pairs, strict=True):
        check(file, images.shape[1:], dataset, split)
    images, labels = (np.concatenate(part)[:limit] for part in zip(*pairs, strict=True))
    if canvas is not None:
        images = rescale(images, 1.0, canvas, DATASETS[dataset].extension)
    return images, labels


def file_of(folder: Path, split: str, factor: float) -> Path:
    """The file of a split: its name states a size factor, as in `…_scte0p841.h5`.

    Training images have factor 1 if the name has none. A test set in a separate file
    takes precedence over one in a file with training images.
    """
    kind = "scte" if split == "test" else "sctr"
    stated = f"{kind}{factor:.3f}".replace(".", "p")
    files = [
        file
        for file in h5_files(folder)
        if re.search(rf"{stated}(?!\d|-\d+p)", file.name)  # not a range of factors
        or (kind == "sctr" and kind not in file.name)
    ]
    splits = {file: list(read_h5(file, limit=1)) for file in files}
    having = [file for file in files if split in splits[file]]
    own = [file for file in having if splits[file] == ["test"]] or having
    if len(own) != 1:
        raise FileNotFoundError(
            f"one HDF5 file in {folder} must have the split {split!r} at size factor "
            f"{factor}. Received: {[file.name for file in own]}"
        )
    return own[0]


def check(file: Path, shape: tuple[int, ...], dataset: str, split: str) -> None:
    """Refuses images of another size than the data set's."""
    info, (height, width, channels) = DATASETS[dataset], shape
    side = info.test_canvas if split == "test" else info.canvas
    # A black surrounding may be larger: MNIST Large Scale has 112x112.
    large = info.extension == "zero" and min(height, width) >= side
    if channels != info.image_shape[-1] or not (large or height == width == side):
        raise ValueError(
            f"{file} must have images of {dataset}: {side}x{side}x"
            f"{info.image_shape[-1]}. Received: {split}, {height}x{width}x{channels}"
        )
