"""Reading the HDF5 files of the authors of the rescaled data sets."""

import os
from dataclasses import dataclass

import numpy as np

from ._h5_file import H5File, describe_h5


@dataclass(frozen=True)
class H5Images(H5File[tuple[np.ndarray, np.ndarray]]):
    """What was found in a file; `print` it for the report.

    Args:
        path: the file.
        factor: the size factor that the name of the file states, or None.
        splits: images `(N, H, W, C)` float32 and labels `(N,)` int32, for those of
            "train", "validation" and "test" that the file has.
        report: a line for each split, and for each departure from what was expected.
    """


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
        path: an HDF5 file. Its splits are read into memory; `rescaled_h5` reads a
            folder of such files as it goes.

    Returns:
        An `H5Images`.

    Raises:
        FileNotFoundError: if there is no such file.
        OSError: if it is no HDF5 file, or not a complete one.
        ValueError: if it has no pair of keys as above, or images or labels that have
            other shapes, differ in number, are not finite or number no classes.

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
    return H5Images(file.path, file.factor, splits, tuple(report))
