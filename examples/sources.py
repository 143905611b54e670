"""Where images come from: TensorFlow Datasets, or folders of HDF5 files."""

import argparse
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_gdrn.data import DATASETS, rescaled, rescaled_arrays, rescaled_h5

# Words in the names of files, without signs, and their data sets: the first one counts.
NAMED = {
    "fashion": "fashion_mnist",
    "stl10original": "stl10_original",
    **{name: name for name in ("mnist", "cifar10", "stl10", "digits")},
}
Canvas = tuple[int, int] | None


@dataclasses.dataclass(frozen=True)
class Source:
    """Where images come from.

    Args:
        data_dir: Directory of TensorFlow Datasets.
        download: Whether to download what is not there.
        h5: Folders of HDF5 files by data set, or by "" for any; then nothing else is
            read.
    """

    data_dir: str | None = None
    download: bool = False
    h5: Mapping[str, Path] = dataclasses.field(default_factory=dict)

    def batches(
        self,
        dataset: str,
        split: str,
        factor: float = 1.0,
        *,
        canvas: Canvas = None,
        **options: Any,
    ) -> tf.data.Dataset:
        """Batches as those of `rescaled`; of HDF5 files, the middle of the images."""
        if not self.h5:
            where = {"data_dir": self.data_dir, "download": self.download}
            return rescaled(dataset, split, factor, canvas=canvas, **where, **options)
        folder = self.h5.get(dataset, self.h5.get(""))
        if folder is None:
            raise ValueError(
                f"--h5 must have a folder of {dataset}. "
                f"Received: {' '.join(f'{d}={f}' for d, f in self.h5.items())}"
            )
        data = rescaled_h5(folder, split, factor, canvas=canvas, **options)
        for part in data.source.splits:
            _check_images(part, dataset, is_test=split == "test")
        return data

    def arrays(
        self,
        dataset: str,
        split: str,
        factor: float = 1.0,
        *,
        canvas: Canvas = None,
        limit: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first `limit` images `(N, H, W, C)` and labels `(N,)`."""
        options = {"canvas": canvas, "limit": limit}
        if not self.h5:
            where = {"data_dir": self.data_dir, "download": self.download}
            return rescaled_arrays(dataset, split, factor, **where, **options)
        data = self.batches(dataset, split, factor, batch_size=limit, **options)
        return next(data.as_numpy_iterator())

    def collect(
        self, dataset: str, parts: Iterable[tuple[str, float, Canvas]]
    ) -> str | dict[str, list[str]]:
        """Finds and checks images before any of them is needed.

        Args:
            dataset: A key of `DATASETS`.
            parts: Splits, size factors and canvases.

        Returns:
            What tells the images from others, for the settings of a run.
        """
        if not self.h5:
            for split in {split for split, _, _ in parts}:
                self.arrays(dataset, split, limit=1)
            return "TensorFlow Datasets or scikit-learn"
        files = {}
        for split, factor, canvas in parts:
            data = self.batches(dataset, split, factor, canvas=canvas, batch_size=1)
            files[f"{split} at {factor:.3f}"] = data.source.identity()
        return files


def add_source(add: Callable[..., Any]) -> None:
    """Adds the options that `source_of` reads."""
    add("--data-dir", help="directory of TensorFlow Datasets")
    add("--download", action="store_true", help="download the data, if need be")
    add(
        "--h5",
        type=_folder,
        action="append",
        default=[],
        metavar="[DATASET=]FOLDER",
        help="read the HDF5 files of a folder; again for each data set",
    )


def source_of(options: argparse.Namespace) -> Source:
    return Source(options.data_dir, options.download, dict(options.h5))


def _folder(text: str) -> tuple[str, Path]:
    dataset, sign, folder = text.partition("=")
    if not sign:
        return "", Path(text)
    if dataset not in DATASETS:
        known = ", ".join(DATASETS)
        raise argparse.ArgumentTypeError(f"{dataset!r} is none of {known}")
    return dataset, Path(folder)


def _check_images(part: Any, dataset: str, is_test: bool) -> None:
    """Refuses what are not the images of this data set, by all that can be seen."""
    info, name = DATASETS[dataset], re.sub(r"\W|_", "", part.path.name.lower())
    named = next((NAMED[word] for word in NAMED if word in name), dataset)
    side = info.test_canvas if is_test else info.canvas
    height, width, channels = part.image_shape
    # Around objects on black there may be more of it: MNIST Large Scale has 112x112.
    large = info.extension == "zero" and min(height, width) >= side
    classes = int(part.labels.max()) + 1
    few = is_test and classes < info.classes  # of few images
    expected = f"{side}x{side}x{info.image_shape[-1]}"
    if (
        named != dataset
        or not (large or (height, width) == (side, side))
        or channels != info.image_shape[-1]
        or not (few or classes == info.classes)
    ):
        raise ValueError(
            f"{part.path} must have images of {dataset}: {expected}, "
            f"{info.classes} classes. Received: {part.key} of {named}, "
            f"{height}x{width}x{channels}, {classes} classes"
        )
