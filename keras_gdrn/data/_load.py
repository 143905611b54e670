"""The published images of a split, unchanged, in a fixed order."""

import os

import numpy as np

from keras_gdrn._checks import check_count
from keras_gdrn.data._datasets import Slice, dataset_info
from keras_gdrn.data._packed import packed_file, read_packed
from keras_gdrn.data._tfds import prepared_directory, read_tfds

Arrays = tuple[np.ndarray, np.ndarray]


def original_arrays(
    name: str,
    split: str,
    *,
    limit: int | None = None,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The published images of a split, unchanged, in the order of `rescaled`.

    The first images of a split are of all classes: TensorFlow Datasets shuffled the
    records when it wrote them, and the digits are permuted here.

    Args:
        name: A key of `DATASETS`.
        split: "train", "validation", "train+validation" or "test".
        limit: Take only the first `limit` images.
        data_dir, download: As for `rescaled`.

    Returns:
        Images `(N, H, W, C)`, uint8 from 0 to the `white` of `DATASETS`, and labels
        `(N,)`, int32.

    Raises:
        ValueError: If an argument is out of its range.
        FileNotFoundError: At once, if the data have neither been prepared nor packed.

    Example:

    >>> original_arrays("digits", "test")[0].shape
    (797, 8, 8, 1)
    """
    info = dataset_info(name)
    check_count("limit", limit)
    slices = _first(info.slices(split), limit or info.size(split))
    if info.source == "sklearn":
        images, labels = _digits(slices)
    elif (file := packed_file(info.source, data_dir)).exists():
        images, labels = read_packed(file, slices, info.image_shape)
    else:
        directory = prepared_directory(info.source, data_dir, download)
        images, labels = read_tfds(directory, slices)
    return images, labels.astype("int32")


def _first(slices: tuple[Slice, ...], limit: int) -> list[Slice]:
    """The slices cut off after `limit` images."""
    kept: list[Slice] = []
    for source, start, stop in slices:
        if limit > 0:
            kept.append(Slice(source, start, min(stop, start + limit)))
            limit -= stop - start
    return kept


def _digits(slices: list[Slice]) -> Arrays:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    # They come writer by writer. NumPy promises never to change RandomState's streams.
    order = np.random.RandomState(0).permutation(len(labels))
    chosen = np.concatenate([order[start:stop] for _, start, stop in slices])
    return pixels[chosen].reshape(-1, 8, 8, 1).astype("uint8"), labels[chosen]
