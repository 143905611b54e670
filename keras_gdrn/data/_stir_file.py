"""The published files of STIR, read and checked."""

import os
import zipfile
from pathlib import Path

import numpy as np

# Training, validation and test; sizes from 64 down to 17; side of an image.
SPLITS, SIZES, SIDE = 3, 48, 64
Arrays = tuple[np.ndarray, np.ndarray]


def read_published(
    file: str | os.PathLike, classes: int, split: int, rows: list[int]
) -> Arrays:
    """Images `(N, 64, 64, C)` uint8 and labels of a split, size by size.

    Args:
        file: The `.npz` file.
        classes: Number of classes that the data have.
        split, rows: Indices along the first two axes of its arrays.
    """
    path = Path(file).expanduser()
    images, labels = _arrays(path)
    _check(path, images, labels, classes)
    color = images.shape[-3:] == (SIDE, SIDE, 3)
    images, labels = images[split, rows], labels[split, rows]
    return images.reshape(-1, SIDE, SIDE, 3 if color else 1), labels.reshape(-1)


def _arrays(path: Path) -> Arrays:
    with path.open("rb") as opened:  # the error of one that is not there tells itself
        if not zipfile.is_zipfile(opened):
            raise ValueError(f"{path} is no .npz file, which is a zip archive.")
    try:
        with np.load(path, allow_pickle=False) as content:
            missing = {"imgs", "lbls"} - set(content)
            if missing:
                raise KeyError(f"there is no array {sorted(missing)}")
            return content["imgs"], content["lbls"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is no published file of STIR, with arrays `imgs` and `lbls`: "
            f"{error}"
        ) from error


def _check(path: Path, images: np.ndarray, labels: np.ndarray, classes: int) -> None:
    image = (SIDE, SIDE, 3) if images.shape[-1:] == (3,) else (SIDE, SIDE)
    expected = (*labels.shape, *image)
    if labels.shape[:2] != (SPLITS, SIZES) or images.shape != expected:
        raise ValueError(
            f"{path}: `imgs` must be ({SPLITS}, {SIZES}, …, {SIDE}, {SIDE}) or "
            f"({SPLITS}, {SIZES}, …, {SIDE}, {SIDE}, 3), with a label in `lbls` for "
            f"each image. Received: {images.shape} images, {labels.shape} labels"
        )
    if images.dtype != np.uint8 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"{path}: `imgs` must be uint8 and `lbls` integers. Received: "
            f"{images.dtype} and {labels.dtype}"
        )
    if not np.array_equal(np.unique(labels), np.arange(classes)):
        raise ValueError(
            f"{path}: `lbls` must be 0 to {classes - 1}, all of them: is it the file "
            f"of another data set? Received: {len(np.unique(labels))} classes, "
            f"{labels.min()} to {labels.max()}"
        )
