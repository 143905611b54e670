"""The images of STIR: from the published files, or made as published."""

import functools
import lzma
import os
from pathlib import Path

import numpy as np
from scipy import ndimage

from keras_gdrn.data._load import Arrays, original_arrays

# Training, validation and test; sizes from 64 down to 17; side of an image.
SPLITS, SIZES, SIDE = 3, 48, 64
# The 36 icons at each size; LICENSE.md in that folder states their origin.
ICONS = Path(__file__).parent / "stir" / "emoji.xz"
EMOJI, DIGITS = 36, 10
# Images of each digit in each split.
INSTANCES = 50


def read_published(
    file: str | os.PathLike, classes: int, split: int, rows: list[int]
) -> Arrays:
    """Images `(N, 64, 64, C)` uint8 and labels, of a file's split and rows of sizes."""
    path = Path(file).expanduser()
    with path.open("rb") as opened:  # NumPy would not close a damaged one
        try:
            content = np.load(opened, allow_pickle=False)
            images, labels = content["imgs"], content["lbls"]
        except Exception as error:  # damage can raise any error in NumPy
            raise ValueError(
                f"{path} is not a .npz file with arrays `imgs` and `lbls`: {error}"
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


def emoji(split: int, rows: list[int]) -> Arrays:
    """White faces on black, one of each class at each size."""
    images = np.zeros((len(rows), EMOJI, SIDE, SIDE, 1), "uint8")
    icons, positions = _icons(), _emoji_positions()
    for at, row in enumerate(rows):
        size = SIDE - row
        for label in range(EMOJI):
            x, y = positions[label, row, split]
            images[at, label, y : y + size, x : x + size, 0] = icons[label][row]
    labels = np.tile(np.arange(EMOJI), len(rows))
    return images.reshape(-1, SIDE, SIDE, 1), labels


@functools.cache
def _icons() -> list[list[np.ndarray]]:
    """For each class its images of size×size, from the largest down."""
    with lzma.open(ICONS) as file:
        pixels = np.frombuffer(file.read(), "uint8")
    sizes = np.tile(SIDE - np.arange(SIZES), EMOJI)
    pieces = np.split(pixels, np.cumsum(sizes**2)[:-1])
    icons = [p.reshape(size, size) for p, size in zip(pieces, sizes, strict=True)]
    return [icons[first : first + SIZES] for first in range(0, len(icons), SIZES)]


@functools.cache
def _emoji_positions() -> np.ndarray:
    """Left and upper edge, `(class, size, split, 2)`, drawn in that order."""
    random = np.random.RandomState(42)
    positions = [
        random.randint(0, row + 1, 2)
        for _ in range(EMOJI)
        for row in range(SIZES)
        for _ in range(SPLITS)
    ]
    return np.reshape(positions, (EMOJI, SIZES, SPLITS, 2))


def mnist(
    split: int, rows: list[int], data_dir: str | os.PathLike | None, download: bool
) -> Arrays:
    """White digits on black, 50 of each class at each size."""
    source = "test" if split == 2 else "train+validation"
    first = INSTANCES if split == 1 else 0
    digits = _digits(source, data_dir, download)[:, first : first + INSTANCES]
    digits = digits.reshape(-1, *digits.shape[2:])
    images = [_pasted(digits, SIDE - row, split) for row in rows]
    labels = np.tile(np.repeat(np.arange(DIGITS), INSTANCES), len(rows))
    return np.concatenate(images)[..., np.newaxis], labels


@functools.lru_cache(maxsize=2)
def _digits(
    source: str, data_dir: str | os.PathLike | None, download: bool
) -> np.ndarray:
    """Images of each class for two splits, `(10, 100, 28, 28)`."""
    images, labels = original_arrays(
        "mnist", source, data_dir=data_dir, download=download
    )
    chosen = []
    for digit in range(DIGITS):
        order = np.flatnonzero(labels == digit)
        np.random.RandomState(42).shuffle(order)
        chosen.append(images[order[: 2 * INSTANCES], ..., 0])
    return np.stack(chosen)


def _pasted(digits: np.ndarray, size: int, split: int) -> np.ndarray:
    """The digits at one size, at random positions on images of 64×64, in uint8."""
    resize = _resizing(digits.shape[1], size)
    resized = resize @ digits @ resize.T
    limits = {"axis": (1, 2), "keepdims": True}
    resized = np.clip(resized, digits.min(**limits), digits.max(**limits))
    images = np.zeros((len(digits), SIDE, SIDE))
    random = np.random.RandomState([42, size, split])
    corners = random.randint(0, SIDE - size + 1, (len(digits), 2))
    for image, digit, (x, y) in zip(images, resized, corners, strict=True):
        image[y : y + size, x : x + size] = digit
    sigma = 7 / 8 * size / 28
    images = ndimage.gaussian_filter(images, (0, sigma, sigma), mode="nearest")
    images = 2 / np.pi * np.arctan(0.02 * (images - 128))
    lowest, highest = images.min(**limits), images.max(**limits)
    return (255 * ((images - lowest) / (highest - lowest))).astype("uint8")


@functools.lru_cache(maxsize=SIZES)
def _resizing(old: int, new: int) -> np.ndarray:
    """`skimage.transform.resize(order=3)` along one axis, as a matrix `(new, old)`.

    Except for the clipping it is linear: cubic splines with mirrored edges, after
    smoothing if the image shrinks.
    """
    identity = np.eye(old)
    if new < old:
        sigma = (old / new - 1) / 2
        identity = ndimage.gaussian_filter1d(identity, sigma, axis=0, mode="mirror")
    return ndimage.zoom(
        identity, (new / old, 1), order=3, mode="mirror", grid_mode=True
    )
