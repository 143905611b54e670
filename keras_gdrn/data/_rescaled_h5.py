"""A folder of HDF5 files of rescaled images: its contents, and a `tf.data` pipeline."""

import itertools
import os
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_gdrn._checks import check_choice, check_count, check_factor
from keras_gdrn.data._imresize import OVERSHOOT
from keras_gdrn.data._read_h5 import H5Split, describe_h5
from keras_gdrn.data._source import generator, untuned
from keras_gdrn.data._write_h5 import stated_factor

if TYPE_CHECKING:
    import tensorflow as tf

# Images read at a time, and images of such blocks that are shuffled together.
BLOCK = 64
SHUFFLED = 2048


def h5_report(folder: str | os.PathLike) -> str:
    """What a folder of HDF5 files of rescaled images holds, for `print`.

    The images are not read.

    Args:
        folder: Folder of files such as those of `write_h5`.

    Returns:
        For each file its name and size factor, a line for the images and the labels
        of each split, and one for each departure from what `read_h5` expects.

    Raises:
        FileNotFoundError: If there is no such folder, or no such file in it.
        OSError, ValueError: As `read_h5`, but for the values of the images.

    Example:

    >>> path = write_h5("files", "digits", ("test",), 2**-0.25)
    >>> print(h5_report("files"))
    digits_te797_outsize40-40_scte0p841.h5, size factor 0.8408964152537145
      x_test: 797 images 40x40x1
      y_test: classes 0 to 9
    """
    return "\n".join(str(describe_h5(path)) for path in _files(folder))


def rescaled_h5(
    folder: str | os.PathLike,
    split: str,
    factor: float = 1.0,
    *,
    batch_size: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    limit: int | None = None,
) -> "tf.data.Dataset":
    """A split of a rescaled data set, read from HDF5 files as it is asked for.

    The elements are those of `rescaled`. The files are the authors', or written by
    `write_h5`: one for training and validation, and one for each size factor of the
    test set. What `read_h5` says about them holds here too; `h5_report` shows it. The
    file of a test set is found by the size factor in its name (`…_scte0p841.h5`), that
    of the training images by having more than one of them.

    Images are read in blocks of 64, or of as many as the file stores in one chunk. To
    shuffle, the blocks are put in another order in every iteration; then the images of
    successive blocks are shuffled, 2048 at a time. The labels and up to four times 2048
    images are kept in memory: 0.4 GB for CIFAR-10, 0.9 GB for STL-10 in training;
    without shuffling, a few blocks and batches.

    Values up to 0.3 outside [0, 1], where the cubic may carry them, are clipped.

    Args:
        folder: Folder of the files, `*.h5`; hidden ones are skipped.
        split: "train", "validation", "train+validation" or "test".
        factor: Size factor, equal to that in the name to its three decimals. A name
            that states none for training images (`…_sctr1p000.h5`) means 1.
        batch_size: Images in a batch; the last one may be smaller. By default the
            elements are single images.
        shuffle: Whether to reorder the images, anew in every iteration.
        seed: Seed of the shuffling: the same one gives the same orders.
        limit: Take only the first so many images.

    Returns:
        A `tf.data.Dataset` of known cardinality with elements (image, label):
        `(H, W, C)` float32 in [0, 1] and `()` int32, or batches of them.

    Raises:
        ValueError: If an argument is out of its range, two files have the split, or
            what the file has is not as in `read_h5`.
        FileNotFoundError: If no file has the split at this size factor; says what
            there is.
        OSError: If a file is not complete.
        tf.errors.InvalidArgumentError: If values are not finite, or farther outside
            [0, 1], when they are reached; names the file, the key and the images. In
            the first block, which is read at once, they are a `ValueError`.

    Guarantee: from files of `write_h5` the elements equal those of `rescaled` to 1e-6.

    Example:

    >>> path = write_h5("files", "digits", ("test",), 2.0)
    >>> data = rescaled_h5("files", "test", 2.0, batch_size=32)
    >>> data.element_spec[0].shape
    TensorShape([None, 40, 40, 1])
    """
    factor = check_factor(factor)
    check_count("batch_size", batch_size)
    check_count("limit", limit)
    blocks = _blocks(_find_splits(folder, split, factor), limit)
    source = H5Source(blocks)
    count = ceil(len(source) / (batch_size or 1))
    import tensorflow as tf

    data = _groups(blocks, shuffle, seed)
    data = data.unbatch() if batch_size is None else data.rebatch(batch_size)
    data = data.apply(tf.data.experimental.assert_cardinality(count)).prefetch(2)
    data.source, data.batch_size = source, batch_size  # type: ignore[attr-defined]
    return data


class H5Source:
    """The images of some blocks, read one by one."""

    def __init__(self, blocks: "list[Block]"):
        self.blocks = blocks
        self.ends = np.cumsum([block.stop - block.start for block in blocks])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, ...]:
        images = np.empty((len(index), *self.blocks[0].split.shape[1:]), "float32")
        labels = np.empty(len(index), "int32")
        for place in np.argsort(index):  # as they lie in the file
            number = np.searchsorted(self.ends, index[place], side="right")
            block = self.blocks[number]
            at = block.stop - int(self.ends[number] - index[place])
            one = Block(block.split, at, at + 1)
            images[place : place + 1], labels[place : place + 1] = _read(one)
        return images, labels

    def identity(self) -> Any:
        parts = {block.split.path: block.split for block in self.blocks}.values()
        names = [f"{part.path.name} {part.key}{list(part.shape)}" for part in parts]
        return [*names, f"{len(self)} images"]


def _find_splits(folder: str | os.PathLike, split: str, factor: float) -> list[H5Split]:
    """The splits that follow each other in `split`, at one size factor.

    As for `rescaled`, "train+validation" is "train" where no file has a validation
    split. All have images of the same shape, or there is a `ValueError`.
    """
    choices = ["train", "validation", "train+validation", "test"]
    check_choice("split", split, choices)
    first, *others = split.split("+")
    parts = _find(folder, first, factor)
    if not parts:
        raise FileNotFoundError(
            f"No file in {folder} has the split {first!r} at size factor {factor}. "
            f"Found:\n{h5_report(folder)}"
        )
    parts += [part for other in others for part in _find(folder, other, factor)]
    shapes = [part.shape[1:] for part in parts]
    if len(set(shapes)) > 1:
        names = [part.path.name for part in parts]
        raise ValueError(
            f"{split} must have images of one shape. Found: {shapes} in {names}"
        )
    return parts


def _find(folder: str | os.PathLike, split: str, factor: float) -> list[H5Split]:
    """The split of the only file that has it at this size factor, if there is one."""
    # Names state three decimals. Only files whose name fits are opened.
    files = [path for path in _files(folder) if _states(path, split, f"{factor:.3f}")]
    descriptions = [describe_h5(path) for path in files]
    parts = [file.splits[split] for file in descriptions if split in file.splits]
    if len(parts) > 1:
        raise ValueError(
            f"One file in {folder} may have the split {split!r} at size factor "
            f"{factor}. Found: {[part.path.name for part in parts]}"
        )
    return parts


def _states(path: Path, split: str, factor: str) -> bool:
    """Whether the name of a file states this size factor, to three decimals.

    A name that states none for training images means 1.
    """
    if split == "test":
        stated = stated_factor(path.name, "te")
    else:
        stated = stated_factor(path.name, "tr") or 1.0
    return stated is not None and f"{stated:.3f}" == factor


def _files(folder: str | os.PathLike) -> list[Path]:
    """The files `*.h5`, in order, but for hidden ones such as macOS leaves."""
    found = [path for path in Path(folder).glob("*.h5") if not path.is_dir()]
    files = sorted(path for path in found if not path.name.startswith("."))
    if not files:
        raise FileNotFoundError(
            f"`folder` must have HDF5 files, *.h5. Received: folder={str(folder)!r}"
        )
    return files


class Block(NamedTuple):
    """Images `start` to `stop` of a split."""

    split: H5Split
    start: int
    stop: int


def _blocks(splits: list[H5Split], limit: int | None) -> list[Block]:
    """The first `limit` images in blocks, each of whole chunks of its file."""
    left = sum(len(split.labels) for split in splits) if limit is None else limit
    blocks = []
    for split in splits:
        count = min(left, len(split.labels))
        left -= count
        size = split.chunk * ceil(BLOCK / split.chunk)
        for start in range(0, count, size):
            blocks.append(Block(split, start, min(start + size, count)))
    return blocks


def _read_group(
    blocks: list[Block], rng: np.random.Generator | None
) -> tuple[np.ndarray, np.ndarray]:
    """What `_read` gives of all the blocks, in the order that `rng` puts it in."""
    count = sum(block.stop - block.start for block in blocks)
    places = np.arange(count) if rng is None else rng.permutation(count)
    images = np.empty((count, *blocks[0].split.shape[1:]), "float32")
    labels = np.empty(count, "int32")
    for block in blocks:
        here, places = np.split(places, [block.stop - block.start])
        images[here], labels[here] = _read(block)
    return images, labels


def _read(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Images `(n, H, W, C)`, float32 in [0, 1], and labels `(n,)`, int32."""
    split, start, stop = block
    images = split.read(start, stop, low=-OVERSHOOT, high=1 + OVERSHOOT)
    return np.clip(images, 0.0, 1.0, out=images), split.labels[start:stop]


def _groups(blocks: list[Block], shuffle: bool, seed: int) -> "tf.data.Dataset":
    """Images and labels, some blocks at a time: these are shuffled together."""
    import tensorflow as tf

    images, _ = _read(blocks[0])  # an error that all images share comes at once
    size = max(1, SHUFFLED // len(images)) if shuffle else 1
    epochs = itertools.count()

    def groups() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        rng = generator((seed, next(epochs))) if shuffle else None
        order = np.arange(len(blocks)) if rng is None else rng.permutation(len(blocks))
        for start in range(0, len(order), size):
            group = [blocks[number] for number in order[start : start + size]]
            yield _read_group(group, rng)

    # Images are not shuffled one by one: as tensors of 50 kB in many threads they left
    # holes in memory that grew to four times their size.
    shape = (None, *images.shape[1:])
    signature = tf.TensorSpec(shape, "float32"), tf.TensorSpec((None,), "int32")
    data = tf.data.Dataset.from_generator(groups, output_signature=signature)
    return untuned(data).prefetch(1)  # one group is read while another is used
