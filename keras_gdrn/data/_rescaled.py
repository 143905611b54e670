"""Rescaled data sets, as arrays and as a `tf.data` pipeline."""

import os
from typing import TYPE_CHECKING, Any, Union

import keras
import numpy as np

from keras_gdrn._checks import check_canvas, check_count, check_positive
from keras_gdrn.data._datasets import dataset_info
from keras_gdrn.data._imresize import rescale
from keras_gdrn.data._load import original_arrays
from keras_gdrn.data._source import ArraySource, as_dataset

if TYPE_CHECKING:
    import tensorflow as tf


def rescaled_arrays(
    name: str,
    split: str,
    factor: float = 1.0,
    *,
    canvas: int | tuple[int, int] | None = None,
    limit: int | None = None,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The images and labels of `rescaled`, in the same order, as NumPy arrays.

    For any backend. The images must fit in memory: a test set of CIFAR-10 takes 0.5 GB,
    one of STL-10 1.6 GB. The digits need no TensorFlow, nor do files of `pack`.

    Args:
        name, split, factor, canvas, limit, data_dir, download: As for `rescaled`.

    Returns:
        Images `(N, height, width, C)`, float32 in [0, 1], and labels `(N,)`, int32.

    Raises:
        ValueError, FileNotFoundError: As `rescaled`.

    Example:

    >>> rescaled_arrays("digits", "test", 2.0)[0].shape
    (797, 40, 40, 1)
    """
    source = RescaledSource(name, split, factor, canvas, limit, data_dir, download)
    images, labels = source.take(slice(None))
    return images, labels


def rescaled(
    name: str,
    split: str,
    factor: float = 1.0,
    *,
    canvas: int | tuple[int, int] | None = None,
    batch_size: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    limit: int | None = None,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
) -> Union["tf.data.Dataset", keras.utils.PyDataset]:
    """A split of a data set, with every image rescaled by one size factor.

    The published images are decoded once and kept in memory as they are (CIFAR-10:
    150 MB); each batch is rescaled when it is read. Values that the cubic carries out
    of the range of the data are clipped, as in uint8 images, but not rounded.

    Source: the rescaled data sets of Perzanowski and Lindeberg (2025), Sec. 4.1 of
    "Scale-invariant Gaussian derivative residual networks". Which images went into
    which split is not published: here validation is the end of the training part, as
    TensorFlow Datasets orders it. For STL-10 see the comments at `DATASETS`.

    Args:
        name: A key of `DATASETS`: "fashion_mnist", "cifar10", "stl10",
            "stl10_original" (the published 5000 and 8000 images), "mnist" or
            "digits" (of scikit-learn, 8x8 pixels, nothing to download; size factor 1
            means 20x20 pixels).
        split: "train", "validation", "train+validation" or "test".
        factor: Size factor, finite and positive.
        canvas: Height and width of the images in pixels, or one number for both.
            Defaults to that of `DATASETS`.
        batch_size: Images in a batch; the last one may be smaller. By default the
            elements are single images.
        shuffle: Whether to reshuffle the images in each iteration. (`fit` always does,
            with its own seed.)
        seed: Random seed of the shuffling. The same seed gives the same orders.
        limit: Take only the first `limit` images, which are of mixed classes.
        data_dir: Directory of TensorFlow Datasets, or of a file of `pack`. Defaults to
            the environment variable TFDS_DATA_DIR, then to `~/tensorflow_datasets`.
        download: Whether to download and prepare the data if they are missing.

    Returns:
        A `tf.data.Dataset` of known cardinality with elements (image, label):
        `(height, width, C)` float32 in [0, 1] and `()` int32, or batches of them. Where
        TensorFlow is not installed, a `keras.utils.PyDataset` of the same batches, of
        one image by default.

    Raises:
        ValueError: If an argument is out of its range.
        FileNotFoundError: At once, if the data have neither been prepared nor packed.

    Guarantee: the elements equal those of `rescaled_arrays` to 1e-6.

    Example:

    >>> data = rescaled("digits", "test", 2.0, batch_size=32)
    >>> data.element_spec[0].shape
    TensorShape([None, 40, 40, 1])
    """
    check_count("batch_size", batch_size)
    source = RescaledSource(name, split, factor, canvas, limit, data_dir, download)
    return as_dataset(source, batch_size, shuffle, seed)


class RescaledSource(ArraySource):
    """Images that stay in memory as bytes, and are rescaled when they are read."""

    def __init__(
        self,
        name: str,
        split: str,
        factor: float = 1.0,
        canvas: int | tuple[int, int] | None = None,
        limit: int | None = None,
        data_dir: str | os.PathLike | None = None,
        download: bool = False,
    ):
        self.info = info = dataset_info(name)
        default = info.test_canvas if split == "test" else info.canvas
        self.size = check_canvas(default if canvas is None else canvas)
        self.factor = check_positive("factor", factor)
        options = {"limit": limit, "data_dir": data_dir, "download": download}
        super().__init__(*original_arrays(name, split, **options))

    def take(self, index: Any) -> tuple[np.ndarray, ...]:
        images, labels = super().take(index)
        info = self.info
        images = rescale(images, self.factor * info.unit, self.size, info.extension)
        images /= info.white
        return np.clip(images, 0.0, 1.0, out=images), labels

    def fingerprint(self) -> Any:
        size = f"factor {self.factor:g} on {self.size[0]}x{self.size[1]}"
        return [self.info.name, size, *super().fingerprint()]
