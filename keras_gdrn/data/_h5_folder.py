"""A folder of HDF5 files of rescaled images: its contents, and a `tf.data` pipeline."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keras_gdrn._checks import check_canvas, check_choice, check_count, check_factor
from keras_gdrn.data._h5_file import H5Split, splits_of
from keras_gdrn.data._source import as_dataset

if TYPE_CHECKING:
    import tensorflow as tf


def h5_report(path: str | os.PathLike) -> str:
    """What HDF5 files of rescaled images hold, for `print`.

    Args:
        path: A file as described at `rescaled_h5`, or a folder of them.

    Returns:
        For each file its name and size factor, and a line for each split. It says where
        values are divided by 255, and where a test set is read from another file.

    Raises:
        FileNotFoundError, OSError, ValueError: As `rescaled_h5`.

    Example:

    >>> print(h5_report("files"))
    digits_te797_outsize40-40_scte0p841.h5, size factor 0.841
      x_test: 797 images 40x40x1, classes 0 to 9
    """
    files = [Path(path)] if Path(path).is_file() else _files(path)
    found = [(file.name, _factor(file, "te"), splits_of(file)) for file in files]
    own = {factor for _, factor, splits in found if list(splits) == ["test"]}
    lines = []
    for name, factor, splits in found:
        lines.append(f"{name}, size factor {factor}" if factor else name)
        lines += [f"  {split}" for split in splits.values()]
        if "test" in splits and len(splits) > 1 and factor in own:
            lines[-1] += ": not read, but the file of this test set alone"
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
    written by `write_h5`, with size factors in their names: `…_scte0p841.h5` has a test
    set, `…_sctr1p000….h5` training images; so do others without factor, of factor 1. A
    test set in a file of its own comes before one beside training images.

    A file has `x_train, x_val, x_test` or some of them, `(N, H, W, C)`, and `y_train,
    y_val, y_test`, `(N,)` or `(N, 1)`. Where others have more, one image, with or
    without its first axis, or none is a placeholder and left out. Values are of [0, 1],
    or divided by 255: integers always, floats where the first 64 images have values
    above 1.3. What the cubic carried outside of [0, 1], by at most 0.3, is clipped.
    What is stored in chunks of several images is read into memory as a whole.

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
        ValueError: If an argument is out of its range, two files have the split, or a
            file has another layout.
        FileNotFoundError: If no file has the split at this factor; says what there is.
        OSError: If a file is not complete.
        tf.errors.InvalidArgumentError: If values are out of their range, when they are
            reached; names the file, the key and the images.

    Guarantee: from files of `write_h5` the elements equal those of `rescaled` to 1e-6.

    Example:

    >>> path = write_h5("files", "digits", ("test",), 2.0)
    >>> rescaled_h5("files", "test", 2.0, batch_size=32).element_spec[0].shape
    TensorShape([None, 40, 40, 1])
    """
    check_count("batch_size", batch_size)
    check_count("limit", limit)
    source = H5Source(find_splits(folder, split, factor), limit, canvas)
    return as_dataset(source, batch_size, shuffle, seed)


class H5Source:
    """Images and labels of splits that follow each other, read by their numbers."""

    def __init__(self, splits: list[H5Split], limit: int | None, canvas):
        self.splits, self.limit = splits, limit
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
        count = sum(map(len, self.splits))
        return min(count, self.limit or count)

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Images `(n, H, W, C)`, float32 in [0, 1], and labels `(n,)`, int32."""
        images = np.empty((len(index), *self.image_shape), "float32")
        labels, index = np.empty(len(index), "int32"), np.array(index)
        for split in self.splits:
            own = (index >= 0) & (index < len(split))
            if own.any():
                whole, labels[own] = split.rows(index[own])
                images[own] = whole[:, *self.window]
            index -= len(split)
        return images, labels

    def identity(self) -> list[str]:
        """What tells them from other images: files with their sizes, and shapes."""
        sizes = [f"{part.path.stat().st_size} bytes" for part in self.splits]
        names = [f"{part.path.name}, {part}" for part in self.splits]
        return [*names, *sizes, f"of which {(len(self), *self.image_shape)}"]


def find_splits(folder: str | os.PathLike, split: str, factor: float) -> list[H5Split]:
    """The splits that follow each other in `split`: "train" may have no validation."""
    check_choice("split", split, ["train", "validation", "train+validation", "test"])
    stated, kind = f"{check_factor(factor):.3f}", "te" if split == "test" else "tr"
    found = [splits_of(f) for f in _files(folder) if _factor(f, kind) == stated]
    parts: list[H5Split] = []
    for name in split.split("+"):
        having = [splits for splits in found if name in splits]
        own = [splits for splits in having if list(splits) == ["test"]]
        chosen = [splits[name] for splits in own or having]
        if len(chosen) > 1:
            raise ValueError(
                f"One file in {folder} may have the split {name!r} at size factor "
                f"{factor}. Found: {[part.path.name for part in chosen]}"
            )
        parts += chosen
        if not parts:
            raise FileNotFoundError(
                f"No file in {folder} has the split {name!r} at size factor {factor}. "
                f"Found:\n{h5_report(folder)}"
            )
    shapes = [part.image_shape for part in parts]
    if len(set(shapes)) > 1:
        raise ValueError(f"{folder}: {split} must be of one shape. Found: {shapes}")
    return parts


def _factor(path: Path, kind: str) -> str | None:
    """The size factor in the name of a file, "0.841" of `…scte0p841…` for kind "te".

    Training images, "tr", are of factor 1 where the name has none. A range is none.
    """
    stated = re.search(rf"sc{kind}(\d+)p(\d{{3}})(?!\d|-\d+p)", path.name)
    if stated:
        return f"{stated[1]}.{stated[2]}"
    return "1.000" if kind == "tr" and "sctr" not in path.name else None


def _files(folder: str | os.PathLike) -> list[Path]:
    """The files, in order, but for hidden ones such as macOS leaves."""
    files = sorted(Path(folder).glob("[!.]*.h5"))
    if not files:
        raise FileNotFoundError(
            f"`folder` must have HDF5 files, *.h5. Received: folder={str(folder)!r}"
        )
    return files
