"""Where images come from: TensorFlow Datasets, or a folder of HDF5 files."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_gdrn.data import DATASETS, rescaled, rescaled_h5

# A split, a size factor and a canvas.
Part = tuple[str, float, tuple[int, int]]
# Words in the names of files, without signs, and their data sets: the first one counts.
NAMED = {
    "fashion": "fashion_mnist",
    "stl10original": "stl10_original",
    **{name: name for name in ("mnist", "cifar10", "stl10", "digits")},
}


@dataclasses.dataclass(frozen=True)
class Source:
    """Where images come from: if there are folders of HDF5 files, from nowhere else."""

    data_dir: str | None = None  # of TensorFlow Datasets
    download: bool = False
    # By data set, or "" for any other.
    h5: Mapping[str, Path] = dataclasses.field(default_factory=dict)

    def batches(
        self, dataset: str, split: str, factor: float = 1.0, **options: Any
    ) -> tf.data.Dataset:
        """Batches as those of `rescaled`; of HDF5 files, the middle of the images."""
        if not self.h5:
            where = {"data_dir": self.data_dir, "download": self.download}
            return rescaled(dataset, split, factor, **where, **options)
        data = rescaled_h5(self._folder(dataset), split, factor, **options)
        for part in data.source.splits:
            _check(part, dataset, is_test=split == "test")
        return data

    def look_up(self, dataset: str, parts: Iterable[Part]) -> str | list[str]:
        """Finds images before they are needed; what tells them from others.

        Raises:
            FileNotFoundError, ValueError: If some are not there, or are of another set.
        """
        for split, factor, canvas in parts:
            self.batches(dataset, split, factor, canvas=canvas, limit=1)
        if not self.h5:
            return "TensorFlow Datasets or scikit-learn"
        files = sorted(self._folder(dataset).glob("*.h5"))
        return [f"{file.name}, {file.stat().st_size} bytes" for file in files]

    def _folder(self, dataset: str) -> Path:
        folder = self.h5.get(dataset, self.h5.get(""))
        if folder is None:
            raise ValueError(
                f"--h5 must name a folder for {dataset}, or one for all. Received: "
                f"{', '.join(f'{name}={path}' for name, path in self.h5.items())}"
            )
        return folder


def named_folder(text: str) -> tuple[str, Path]:
    """`NAME=FOLDER` or `FOLDER`, as `Source` takes them."""
    name, equals, folder = text.partition("=")
    return (name, Path(folder)) if equals and name in DATASETS else ("", Path(text))


def _check(part: Any, dataset: str, is_test: bool) -> None:
    """Refuses what are not the images of this data set, by all that can be seen."""
    info, name = DATASETS[dataset], re.sub(r"\W|_", "", part.path.name.lower())
    named = next((NAMED[word] for word in NAMED if word in name), dataset)
    side = info.test_canvas if is_test else info.canvas
    height, width, channels = part.image_shape
    # Of what is black there may be more: MNIST Large Scale has 112x112.
    large = info.extension == "zero" and min(height, width) >= side
    classes = int(part.labels.max()) + 1
    few = is_test and classes < info.classes  # of few images
    fits = named == dataset and channels == info.image_shape[-1]
    fits &= large or height == width == side
    if not (fits and (few or classes == info.classes)):
        raise ValueError(
            f"{part.path} must have images of {dataset}: "
            f"{side}x{side}x{info.image_shape[-1]}, {info.classes} classes. Received: "
            f"{part.key} of {named}, {height}x{width}x{channels}, {classes} classes"
        )
