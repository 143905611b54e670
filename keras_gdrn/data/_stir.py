"""STIR, a public benchmark of objects of any size at any position in the image."""

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import keras
import numpy as np

from keras_gdrn._checks import check_choice, check_count, is_integer
from keras_gdrn.data._source import ArraySource, as_dataset
from keras_gdrn.data._stir_images import SIDE, SIZES, emoji, mnist, read_published

if TYPE_CHECKING:
    import tensorflow as tf

# Sizes of the objects, in pixels.
STIR_SIZES: tuple[int, ...] = tuple(range(SIDE + 1 - SIZES, SIDE + 1))
# The sizes that each scenario is trained on; all are tested at all sizes.
STIR_SCENARIOS: dict[int, tuple[int, ...]] = {
    1: STIR_SIZES[:16],
    2: STIR_SIZES[16:32],
    3: STIR_SIZES[32:],
    4: STIR_SIZES,
}
# The data sets, with their numbers of classes.
CLASSES = {"emoji": 36, "mnist": 10, "trafficsign": 16, "aerial": 9}
SPLITS = ("train", "validation", "test")
PUBLISHED = Path(__file__).with_name("stir") / "published.csv"
RECORD = "https://zenodo.org/records/6578038"


def stir_arrays(
    name: str,
    split: str,
    sizes: int | Iterable[int] = STIR_SIZES,
    *,
    side: int = SIDE,
    seed: int = 0,
    file: str | os.PathLike | None = None,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The images and labels of `stir`, in the same order, as NumPy arrays.

    Args:
        name, split, sizes, side, seed, file, data_dir, download: As for `stir`.

    Returns:
        Images `(N, side, side, C)`, float32 in [0, 1], and labels `(N,)`, int32.

    Raises:
        ValueError, FileNotFoundError: As `stir`.

    Example:

    >>> stir_arrays("emoji", "test", [17, 64])[0].shape
    (72, 64, 64, 1)
    """
    source = StirSource(name, split, sizes, side, seed, file, data_dir, download)
    images, labels = source.take(slice(None))
    return images, labels


def stir(
    name: str,
    split: str,
    sizes: int | Iterable[int] = STIR_SIZES,
    *,
    side: int = SIDE,
    file: str | os.PathLike | None = None,
    batch_size: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
) -> Union["tf.data.Dataset", keras.utils.PyDataset]:
    """Objects of chosen sizes, at any position on images of 64×64 pixels.

    The benchmark has each object at all 48 sizes from 17 to 64 pixels. In its scenarios
    (`STIR_SCENARIOS`) a network is trained on some of the sizes and tested on all.

    Without `file`, the emoji come with the package, and the digits are made from MNIST.
    They follow the publication but differ from its files: the icons were rendered
    again, and TensorFlow Datasets has MNIST in another order, so the digits are others
    of the same kind, at other positions.

    Source: T. R. Altstidl et al., "Just a Matter of Scale? Reevaluating Scale
    Equivariance in Convolutional Neural Networks", arXiv 2211.10288; the data at
    https://zenodo.org/records/6578038. The emoji are icons of Font Awesome Free 5.15.3,
    CC BY 4.0.

    Args:
        name: "emoji" (36 classes, one image of each at each size), "mnist" (10, 50),
            "trafficsign" (16, 25, in color) or "aerial" (9, 25, in color).
        split: "train", "validation" or "test".
        sizes: Size or sizes of the objects in pixels, from 17 to 64.
        side: Height and width of the images. Below 64, which is enough to train on
            small objects, a random square that contains the object is cut out of each.
        file: The published `.npz` file; "trafficsign" and "aerial" need it.
        batch_size: Images in a batch; the last one may be smaller. By default the
            elements are single images.
        shuffle: Whether to reshuffle the images in each iteration. Otherwise they are
            ordered by size and, within a size, by class.
        seed: Random seed of the shuffling and of the squares' positions. The same seed
            gives the same orders and images.
        data_dir: Directory of TensorFlow Datasets with MNIST, as for `rescaled`.
        download: Whether to download MNIST if it is missing.

    Returns:
        A `tf.data.Dataset` of known cardinality with elements (image, label):
        `(side, side, C)` float32 in [0, 1] and `()` int32, or batches of them. Where
        TensorFlow is not installed, a `keras.utils.PyDataset` of the same batches, of
        one image by default.

    Raises:
        ValueError: If an argument is out of its range, or `file` is damaged or belongs
            to another data set.
        FileNotFoundError: If `file` does not exist, or MNIST has not been prepared.

    Guarantee: the elements equal those of `stir_arrays`.

    Example:

    >>> data = stir("emoji", "train", STIR_SCENARIOS[1], batch_size=24, shuffle=True)
    >>> data.element_spec[0].shape
    TensorShape([None, 64, 64, 1])
    """
    check_count("batch_size", batch_size)
    source = StirSource(name, split, sizes, side, seed, file, data_dir, download)
    return as_dataset(source, batch_size, shuffle, seed)


def stir_published(name: str, scenario: int) -> dict[str, np.ndarray]:
    """Published accuracies of eleven networks on STIR, for comparison.

    Source: as `stir`; each value is the mean of 25 to 50 runs.

    Args:
        name: "emoji" or "mnist".
        scenario: One of `STIR_SCENARIOS`, 1 to 4.

    Returns:
        For each network name, `(48,)` accuracies in percent at `STIR_SIZES`.

    Raises:
        ValueError: If an argument is none of these.

    Example:

    >>> stir_published("emoji", 1)["xu"].mean().round(1)
    76.5
    """
    check_choice("name", name, ("emoji", "mnist"))
    check_choice("scenario", scenario, tuple(STIR_SCENARIOS))
    with PUBLISHED.open(encoding="utf-8") as file:
        return {
            row["model"]: np.array([float(row[f"s{size}"]) for size in STIR_SIZES])
            for row in csv.DictReader(file)
            if (row["data"], row["scenario"]) == (name, str(scenario))
        }


class StirSource(ArraySource):
    """Images that stay in memory as bytes."""

    def __init__(
        self,
        name: str,
        split: str,
        sizes: int | Iterable[int],
        side: int,
        seed: int,
        file: str | os.PathLike | None,
        data_dir: str | os.PathLike | None,
        download: bool,
    ):
        check_choice("name", name, tuple(CLASSES))
        index = SPLITS.index(check_choice("split", split, SPLITS))
        sizes = _checked_sizes(sizes)
        if not is_integer(side) or not max(sizes) <= side <= SIDE:
            raise ValueError(
                f"`side` must be an integer from the largest of `sizes` to {SIDE}. "
                f"Received: side={side!r}, sizes up to {max(sizes)}"
            )
        rows = [SIDE - size for size in sizes]
        if file is not None:
            images, labels = read_published(file, CLASSES[name], index, rows)
        elif name == "emoji":
            images, labels = emoji(index, rows)
        elif name == "mnist":
            images, labels = mnist(index, rows, data_dir, download)
        else:
            raise ValueError(
                f"`file` must be the published {name}.npz, from {RECORD}: only emoji "
                "and mnist can be made here. Received: file=None"
            )
        images = images if side == SIDE else _cut(images, side, seed)
        super().__init__(images, labels.astype("int32"))

    def take(self, index: Any) -> tuple[np.ndarray, ...]:
        images, labels = super().take(index)
        return np.divide(images, 255, dtype="float32"), labels


def _cut(images: np.ndarray, side: int, seed: int) -> np.ndarray:
    """A random square of each image that contains all that is not black."""
    random = np.random.default_rng(seed)
    squares = []
    for image in images:
        lit = (np.flatnonzero(image.any(axes))[[0, -1]] for axes in ((1, 2), (0, 2)))
        y, x = (
            random.integers(max(0, last + 1 - side), min(first, SIDE - side) + 1)
            for first, last in lit
        )
        squares.append(image[y : y + side, x : x + side])
    return np.stack(squares)


def _checked_sizes(sizes: int | Iterable[int]) -> list[int]:
    chosen = list(sizes) if isinstance(sizes, Iterable) else [sizes]
    if not chosen or not all(is_integer(n) and n in STIR_SIZES for n in chosen):
        raise ValueError(
            f"`sizes` must be integers from {STIR_SIZES[0]} to {STIR_SIZES[-1]}, at "
            f"least one. Received: sizes={sizes!r}"
        )
    return chosen
