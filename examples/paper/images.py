"""Where images come from: TensorFlow Datasets, or a folder of HDF5 files."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_gdrn.data import DATASETS, rescaled, rescaled_h5

# A split, a size factor and a canvas.
Part = tuple[str, float, int | tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Source:
    """Where images come from: if there is a folder of HDF5 files, from nowhere else."""

    data_dir: str | None = None  # of TensorFlow Datasets
    download: bool = False
    h5: Path | None = None  # of several data sets, with a subfolder for each

    def batches(
        self, dataset: str, split: str, factor: float = 1.0, **options: Any
    ) -> tf.data.Dataset:
        """Batches as those of `rescaled`; of HDF5 files, the middle of the images."""
        if not self.h5:
            where = {"data_dir": self.data_dir, "download": self.download}
            return rescaled(dataset, split, factor, **where, **options)
        data = rescaled_h5(_folder(self.h5, dataset), split, factor, **options)
        for part in data.source.splits:
            _check(part, dataset, is_test=split == "test")
        return data

    def look_up(self, dataset: str, parts: Iterable[Part]) -> str | list[str]:
        """Finds images before they are needed; returns how they differ from others."""
        for split, factor, canvas in parts:
            self.batches(dataset, split, factor, canvas=canvas, limit=1)
        if not self.h5:
            return "TensorFlow Datasets or scikit-learn"
        files = sorted(_folder(self.h5, dataset).glob("*.h5"))
        return [f"{file.name}, {file.stat().st_size} bytes" for file in files]


def _folder(h5: Path, dataset: str) -> Path:
    own = h5 / dataset
    return own if own.is_dir() else h5


def _check(part: Any, dataset: str, is_test: bool) -> None:
    """Refuses images of another size, or of other classes, than the data set's."""
    info, (height, width, channels) = DATASETS[dataset], part.image_shape
    side, classes = info.test_canvas if is_test else info.canvas, part.labels.max() + 1
    # Of what is black there may be more: MNIST Large Scale has 112x112.
    large = info.extension == "zero" and min(height, width) >= side
    fits = channels == info.image_shape[-1] and (large or height == width == side)
    few = is_test and classes < info.classes  # of few images
    if not fits or not (few or classes == info.classes):
        raise ValueError(
            f"{part.path} must have images of {dataset}: {side}x{side}x"
            f"{info.image_shape[-1]}, {info.classes} classes. Received: "
            f"{part.key}, {height}x{width}x{channels}, {classes} classes"
        )
