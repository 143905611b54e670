"""Where images come from: TensorFlow Datasets, or a folder of HDF5 files."""

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_gdrn.data import DATASETS, rescaled, rescaled_arrays, rescaled_h5


@dataclasses.dataclass(frozen=True)
class Source:
    """Where images come from.

    Args:
        data_dir: Directory of TensorFlow Datasets.
        download: Whether to download what is not there.
        h5: Folder of the HDF5 files of one data set, such as the authors'; then
            nothing else is read.
    """

    data_dir: str | None = None
    download: bool = False
    h5: Path | None = None

    @property
    def kind(self) -> str:
        """In words, for the record."""
        return (
            "TensorFlow Datasets or scikit-learn" if self.h5 is None else "HDF5 files"
        )

    def batches(
        self,
        dataset: str,
        split: str,
        factor: float = 1.0,
        *,
        canvas: tuple[int, int] | None = None,
        **options: Any,
    ) -> tf.data.Dataset:
        """Batches as those of `rescaled`; of HDF5 files, the middle of the images."""
        if self.h5 is None:
            where = {"data_dir": self.data_dir, "download": self.download}
            return rescaled(dataset, split, factor, canvas=canvas, **where, **options)
        data = rescaled_h5(self.h5, split, factor, **options)
        shape = data.element_spec[0].shape
        _check_channels(self.h5, dataset, shape[-1])
        window = _window(self.h5, tuple(shape[-3:-1]), canvas)
        return data.map(lambda images, labels: (images[window], labels))

    def arrays(
        self,
        dataset: str,
        split: str,
        factor: float = 1.0,
        *,
        canvas: tuple[int, int] | None = None,
        limit: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first `limit` images `(N, H, W, C)` and labels `(N,)`."""
        options = {"canvas": canvas, "limit": limit}
        if self.h5 is None:
            where = {"data_dir": self.data_dir, "download": self.download}
            return rescaled_arrays(dataset, split, factor, **where, **options)
        data = self.batches(dataset, split, factor, batch_size=limit, **options)
        return next(data.as_numpy_iterator())


def add_source(add: Callable[..., Any]) -> None:
    """Adds the options that `source_of` reads."""
    add("--data-dir", help="directory of TensorFlow Datasets")
    add("--download", action="store_true", help="download the data, if need be")
    add("--h5", type=Path, metavar="FOLDER", help="read the HDF5 files of a folder")


def source_of(options: argparse.Namespace) -> Source:
    return Source(options.data_dir, options.download, options.h5)


def _check_channels(folder: Path, dataset: str, channels: int) -> None:
    expected = DATASETS[dataset].image_shape[-1]
    if channels != expected:
        raise ValueError(
            f"The images of {dataset} have {expected} channel(s). "
            f"Received: {folder} with images of {channels}"
        )


def _window(
    folder: Path, sizes: tuple[int, int], canvas: tuple[int, int] | None
) -> tuple:
    """The middle of images of these sizes, as large as the canvas."""
    wanted = canvas or sizes
    if any(n > size for n, size in zip(wanted, sizes, strict=True)):
        raise ValueError(
            f"{folder} must have images of at least {wanted[0]}x{wanted[1]} pixels, "
            f"the canvas that is asked for. Received: {sizes[0]}x{sizes[1]}"
        )
    starts = [(size - n) // 2 for n, size in zip(wanted, sizes, strict=True)]
    slices = (slice(s, s + n) for s, n in zip(starts, wanted, strict=True))
    return (Ellipsis, *slices, slice(None))
