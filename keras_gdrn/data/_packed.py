"""The published images of a data set in one file, which needs no TensorFlow."""

import os
import zipfile
from pathlib import Path

import numpy as np

from keras_gdrn.commands import atomic_write
from keras_gdrn.data._datasets import Slice, dataset_info
from keras_gdrn.data._read_image import read_image
from keras_gdrn.data._tfds import data_root, prepared_directory, read_encoded


def pack(
    name: str,
    folder: str | os.PathLike,
    *,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
) -> Path:
    """Writes the published images of a data set to one file.

    `original_arrays` and `rescaled_arrays` with `data_dir=folder` read it without
    TensorFlow, on another machine too. Images stay compressed as they are stored.

    Args:
        name: A key of `DATASETS`. (The digits need no file.)
        folder: Where to write the file.
        data_dir, download: As for `rescaled`.

    Returns:
        The file, `folder/<source>.npz`.

    Raises:
        ValueError: If there is no such data set, or none to pack.
        FileNotFoundError: At once, if the data have not been prepared.

    Example:

    >>> pack("fashion_mnist", "data").name
    'fashion_mnist.npz'
    """
    info = dataset_info(name)
    if info.source == "sklearn":
        raise ValueError(f"scikit-learn has these images. Received: name={name!r}")
    directory = prepared_directory(info.source, data_dir, download)
    arrays = {}
    for part in dict.fromkeys(piece.source for piece in info.train + info.test):
        images, labels = read_encoded(directory, part)
        arrays[f"{part}_labels"] = labels
        arrays[f"{part}_ends"] = np.cumsum([len(image) for image in images])
        arrays[f"{part}_images"] = np.frombuffer(b"".join(images), "uint8")
    file = packed_file(info.source, folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as partial, open(partial, "wb") as opened:
        np.savez(opened, **arrays)
    return file


def packed_file(source: str, data_dir: str | os.PathLike | None) -> Path:
    """Where `pack` writes a data set of TensorFlow Datasets."""
    return data_root(data_dir) / f"{source}.npz"


def read_packed(
    file: Path, slices: list[Slice], shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of some slices, one after the other."""
    try:
        return _read(file, slices, shape)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{file} must be a file of `pack`, and undamaged: pack the data set again. "
            f"Received: {error}"
        ) from error


def _read(
    file: Path, slices: list[Slice], shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    images, labels = [np.empty((0, *shape), "uint8")], []
    with file.open("rb") as opened, np.load(opened) as packed:
        for part, start, stop in slices:
            values, ends = packed[f"{part}_images"], packed[f"{part}_ends"]
            encoded = np.split(values, ends[:-1])[start:stop]
            images += [read_image(one.tobytes(), shape[-1])[None] for one in encoded]
            labels.append(packed[f"{part}_labels"][start:stop])
    return np.concatenate(images), np.concatenate(labels)
