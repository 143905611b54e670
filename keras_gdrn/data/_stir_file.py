"""The published files of STIR, read and checked."""

import os
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
    with path.open("rb") as opened:  # NumPy would not close one that is damaged
        try:
            content = np.load(opened, allow_pickle=False)
            images, labels = content["imgs"], content["lbls"]
        except Exception as error:  # NumPy lets through whatever damage raises
            raise ValueError(
                f"{path} is no .npz file with arrays `imgs` and `lbls`: {error}"
            ) from error
    image = (SIDE, SIDE, 3) if images.shape[-1:] == (3,) else (SIDE, SIDE)
    found = np.unique(labels)
    if (
        labels.shape[:2] != (SPLITS, SIZES)
        or images.shape != (*labels.shape, *image)
        or images.dtype != np.uint8
        or not np.array_equal(found, np.arange(classes))
    ):
        raise ValueError(
            f"{path}: `imgs` must be uint8 ({SPLITS}, {SIZES}, …, {SIDE}, {SIDE}), in "
            f"color (…, 3), with a label of 0 to {classes - 1} in `lbls` for each: is "
            f"it the file of another data set? Received: {images.dtype} "
            f"{images.shape} with labels {labels.shape} of {len(found)} classes"
        )
    images, labels = images[split, rows], labels[split, rows]
    return images.reshape(-1, SIDE, SIDE, 3 if image[2:] else 1), labels.ravel()
