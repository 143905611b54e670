"""A folder of HDF5 files of rescaled images: its contents, and a `tf.data` pipeline."""

import os
import re
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keras_gdrn._checks import check_canvas, check_choice, check_count, check_factor
from keras_gdrn.data._array_batches import renewable, untuned
from keras_gdrn.data._datasets import SIZE_FACTORS
from keras_gdrn.data._random import epoch_generators
from keras_gdrn.data._read_h5 import H5Split, describe_h5

if TYPE_CHECKING:
    import tensorflow as tf

# Images read at a time where the caller asks for single ones.
CHUNK = 64


def h5_report(path: str | os.PathLike) -> str:
    """What HDF5 files of rescaled images hold, for `print`.

    Of the images, only the first few are read.

    Args:
        path: A file such as those of `write_h5`, or a folder of them.

    Returns:
        For each file its name and size factor, a line for the images and the labels of
        each split, and for each placeholder. It says where values are divided by 255,
        and where a test set is read from another file.

    Raises:
        FileNotFoundError: If there is no such file or folder, or no file in it.
        OSError, ValueError: As `rescaled_h5`, but for the values of the images.

    Example:

    >>> path = write_h5("files", "digits", ("test",), 2**-0.25)
    >>> print(h5_report("files"))
    digits_te797_outsize40-40_scte0p841.h5, size factor 0.8408964152537145
      x_test: 797 images 40x40x1
      y_test: classes 0 to 9
    """
    files = [Path(path)] if Path(path).is_file() else _files(path)
    found = [(file, stated_factor(file, "te"), *describe_h5(file)) for file in files]
    alone = {factor for _, factor, splits, _ in found if list(splits) == ["test"]}
    lines = []
    for file, factor, splits, report in found:
        lines.append(file.name + ("" if factor is None else f", size factor {factor}"))
        lines += [f"  {line}" for line in report]
        if "test" in splits and len(splits) > 1 and factor in alone:
            lines.append("  x_test: not read, but the file of this test set alone")
    return "\n".join(lines)


def rescaled_h5(
    folder: str | os.PathLike,
    split: str,
    factor: float = 1.0,
    *,
    canvas: int | tuple[int, int] | None = None,
    batch_size: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    limit: int | None = None,
) -> "tf.data.Dataset":
    """A split of a rescaled data set, read from HDF5 files as it is asked for.

    The elements and their order are those of `rescaled`. The files are the authors', or
    written by `write_h5`: one for training and validation, and one for each size factor
    of the test set. `h5_report` shows what they hold. Names tell the size factors:
    `…_scte0p841.h5` that of a test set, `…_sctr1p000…` that of training images, or 1
    where there is none. Where a test set has a file of its own and is beside training
    images too, its own is read.

    The layout is that of MNIST Large Scale, of the same laboratory: the keys `x_train,
    x_val, x_test, y_train, y_val, y_test`, or some of these pairs; images `(N, H, W,
    C)`, labels `(N,)` or `(N, 1)`. In a file of test images, one image takes the place
    of the training images, `(1, H, W, C)` or `(H, W, C)`; it is left out. Values are of
    [0, 1], or of 0 to 255 and then divided by 255: integers always are, floats where
    the first 64 images have values above 1.3. What the cubic carried outside of [0, 1],
    by at most 0.3, is clipped. Images that are stored in chunks of several are read
    into memory; others as they are asked for.

    Args:
        folder: Folder of the files, `*.h5`; hidden ones are skipped.
        split: "train", "validation", "train+validation" or "test".
        factor: Size factor, equal to that in the name to its three decimals.
        canvas: Height and width in pixels of the middle of the images, or one number
            for both, of what is taken of them; by default all.
        batch_size, shuffle, seed, limit: As for `rescaled`.

    Returns:
        A `tf.data.Dataset` as that of `rescaled`.

    Raises:
        ValueError: If an argument is out of its range, two files have the split, or
            what a file has is of another layout, or is not stored in it as numbers.
        FileNotFoundError: If no file has the split at this size factor; says what
            there is.
        OSError: If a file is not complete.
        tf.errors.InvalidArgumentError: If values are out of their range, when they are
            reached; names the file, the key and the images.

    Guarantee: from files of `write_h5` the elements equal those of `rescaled` to 1e-6.

    Example:

    >>> path = write_h5("files", "digits", ("test",), 2.0)
    >>> data = rescaled_h5("files", "test", 2.0, batch_size=32)
    >>> data.element_spec[0].shape
    TensorShape([None, 40, 40, 1])
    """
    check_count("batch_size", batch_size)
    check_count("limit", limit)
    source = H5Source(find_splits(folder, split, factor), limit, canvas)
    # What is wrong with all of them is wrong with the first.
    images, _ = source.rows(np.arange(min(len(source), CHUNK)))
    import tensorflow as tf

    def batches() -> tf.data.Dataset:
        generators, size = epoch_generators(seed), batch_size or CHUNK

        def read() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            order = np.arange(len(source))
            if shuffle:
                order = next(generators).permutation(len(source))
            for start in range(0, len(source), size):
                yield source.rows(order[start : start + size])

        shape = (None, *images.shape[1:])
        signature = tf.TensorSpec(shape, "float32"), tf.TensorSpec((None,), "int32")
        data = untuned(tf.data.Dataset.from_generator(read, output_signature=signature))
        data = data if batch_size else data.unbatch()
        count = ceil(len(source) / (batch_size or 1))
        return data.apply(tf.data.experimental.assert_cardinality(count)).prefetch(4)

    data = renewable(batches)
    data.source = source  # type: ignore[attr-defined]
    return data


class H5Source:
    """Images and labels of splits that follow each other, read by their numbers."""

    def __init__(
        self,
        splits: list[H5Split],
        limit: int | None = None,
        canvas: int | tuple[int, int] | None = None,
    ):
        self.splits = splits
        count = sum(map(len, splits))
        self.count = count if limit is None else min(count, limit)
        *size, channels = splits[0].image_shape
        height, width = size if canvas is None else check_canvas(canvas)
        if height > size[0] or width > size[1]:
            raise ValueError(
                f"`canvas` must be within the {size[0]}x{size[1]} pixels of the images "
                f"in {splits[0].path}. Received: canvas={canvas!r}"
            )
        top, left = (size[0] - height) // 2, (size[1] - width) // 2
        self.window = slice(top, top + height), slice(left, left + width)
        self.image_shape = height, width, channels

    def __len__(self) -> int:
        return self.count

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Images `(n, H, W, C)`, float32 in [0, 1], and labels `(n,)`, int32."""
        images = np.empty((len(index), *self.image_shape), "float32")
        labels, start = np.empty(len(index), "int32"), 0
        for split in self.splits:
            own = (index >= start) & (index < start + len(split))
            if own.any():
                whole, labels[own] = split.rows(index[own] - start)
                images[own] = whole[:, *self.window]
            start += len(split)
        return images, labels

    def identity(self) -> list[str]:
        """What tells them from other images: files with their sizes, and shapes."""
        shape = "x".join(map(str, (len(self), *self.image_shape)))
        return [
            f"{split.path.name}, {split.path.stat().st_size} bytes: {split.key}, "
            f"{'x'.join(map(str, (len(split), *split.image_shape)))} up to "
            f"{split.white}, of which {shape}"
            for split in self.splits
        ]


def find_splits(
    folder: str | os.PathLike, split: str, factor: float = 1.0
) -> list[H5Split]:
    """The splits that follow each other in `split`, at one size factor.

    As for `rescaled`, "train+validation" is "train" where no file has a validation
    split. All have images of the same shape, or there is a `ValueError`.
    """
    choices = ["train", "validation", "train+validation", "test"]
    check_choice("split", split, choices)
    first, *others = split.split("+")
    parts = _find(folder, first, check_factor(factor))
    if not parts:
        raise FileNotFoundError(
            f"No file in {folder} has the split {first!r} at size factor {factor}. "
            f"Found:\n{h5_report(folder)}"
        )
    parts += [part for other in others for part in _find(folder, other, factor)]
    shapes = [part.image_shape for part in parts]
    if len(set(shapes)) > 1:
        names = [part.path.name for part in parts]
        raise ValueError(
            f"{split} must have images of one shape. Found: {shapes} in {names}"
        )
    return parts


def _find(folder: str | os.PathLike, split: str, factor: float) -> list[H5Split]:
    """The split of the only file that has it at this size factor, if there is one.

    A test set in a file of its own comes before one beside training images.
    """
    kind = "te" if split == "test" else "tr"
    stated = [(path, stated_factor(path, kind)) for path in _files(folder)]
    # Names state three decimals. Only files whose name fits are opened.
    fit = [p for p, value in stated if value and f"{value:.3f}" == f"{factor:.3f}"]
    found = [splits for splits, _ in map(describe_h5, fit) if split in splits]
    alone = [splits for splits in found if list(splits) == ["test"]]
    parts = [splits[split] for splits in alone or found]
    if len(parts) > 1:
        raise ValueError(
            f"One file in {folder} may have the split {split!r} at size factor "
            f"{factor}. Found: {[part.path.name for part in parts]}"
        )
    return parts


def stated_factor(path: Path, kind: str) -> float | None:
    """The size factor in the name of a file, `…scte0p841…` or `…sctr1p000…`.

    `kind` is "te" or "tr", of test or training images. Those of training are of factor
    1 where the name has none. A range, as in `…scte1p000-4p000…`, is no factor.
    """
    stated = re.search(rf"sc{kind}(\d+)p(\d+)(?!\d|-\d+p)", path.name)
    if not stated:
        return 1.0 if kind == "tr" and "sctr" not in path.name else None
    value = float(f"{stated[1]}.{stated[2]}")
    near = [factor for factor in SIZE_FACTORS if abs(factor - value) < 1e-3]
    return near[0] if near else value


def _files(folder: str | os.PathLike) -> list[Path]:
    """The files `*.h5`, in order, but for hidden ones such as macOS leaves."""
    found = [path for path in Path(folder).glob("*.h5") if not path.is_dir()]
    files = sorted(path for path in found if not path.name.startswith("."))
    if not files:
        raise FileNotFoundError(
            f"`folder` must have HDF5 files, *.h5. Received: folder={str(folder)!r}"
        )
    return files
