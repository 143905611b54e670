"""What users bring as data: read by the number of an image, or batch by batch."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keras_gdrn.data._source import ArraySource, Source


class ItemSource:
    """A data set of single images that are read by number, one after the other."""

    def __init__(self, data: Any):
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, ...]:
        items = [tuple(self.data[int(number)]) for number in index]
        return tuple(np.stack(parts) for parts in zip(*items, strict=True))

    def identity(self) -> Any:
        return f"{type(self.data).__name__} of {len(self)} images"


class BatchStream:
    """Batches that are made elsewhere, in an order that is not known here.

    Args:
        data: A `tf.data.Dataset`, a `keras.utils.PyDataset`, or an iterable that has a
            length, such as PyTorch's `DataLoader`.
    """

    def __init__(self, data: Any):
        self.data = data
        # Images, height, width and channels, as far as they are known of all batches.
        self.shape: list[int | None] = [None] * 4
        self.is_tensorflow = hasattr(data, "element_spec")
        if self.is_tensorflow:
            self.steps = int(data.cardinality())
            shape = data.element_spec[0].shape
            self.shape = self.shape if shape.rank is None else list(shape)
        elif isinstance(data, keras.utils.PyDataset):
            self.steps = data.num_batches or -1
        else:
            self.steps = len(data)
        if self.steps <= 0:
            raise ValueError(
                "`data` must have a known, finite number of batches. "
                f"Received: a cardinality of {self.steps}"
            )

    def epoch(self) -> Iterator[tuple]:
        """The batches of one iteration, as the data make them."""
        if self.is_tensorflow:
            yield from self.data.as_numpy_iterator()
        elif isinstance(self.data, keras.utils.PyDataset):
            yield from (self.data[number] for number in range(self.steps))
            self.data.on_epoch_end()
        else:
            yield from self.data

    def first(self) -> Any:
        """A batch to look at."""
        data = self.data.take(1) if self.is_tensorflow else self.data
        if isinstance(data, keras.utils.PyDataset):
            return data[0]
        return next(data.as_numpy_iterator() if self.is_tensorflow else iter(data))

    def identity(self) -> Any:
        spec = str(self.data.element_spec) if self.is_tensorflow else ""
        return f"{type(self.data).__name__} of {self.steps} batches {spec}".strip()


def as_source(
    data: Any, wanted: int | None = None
) -> tuple[Source | BatchStream, int | None]:
    """The data, read by number where that is possible, and their batch size, if known.

    Args:
        data: What `fit` takes.
        wanted: The size of batches that the data must have, if they are in some.

    Raises:
        ValueError: If they are nothing of what `fit` takes.
    """
    if issubclass(type(data), tuple) and len(data) in (2, 3):
        arrays = [np.asarray(part) for part in data]
        if any(not array.ndim for array in arrays):
            raise _unfit([array.shape for array in arrays])
        return ArraySource(*arrays), None
    if issubclass(type(data), tuple | list | str | Mapping) or hasattr(data, "dtype"):
        raise _unknown(data)
    if hasattr(data, "source") and hasattr(data, "element_spec"):  # of this package
        if len(data.element_spec[0].shape) != 4:
            raise _unfit([part.shape for part in data.element_spec])
        size = getattr(data, "batch_size", None)
        if None not in (wanted, size) and wanted != size:
            raise ValueError(
                f"`data` must have batches of the recipe's size, {wanted}. "
                f"Received: a batch of {size}"
            )
        return data.source, size
    if hasattr(data, "element_spec"):
        _check_structure(data.element_spec)
        return BatchStream(data), None
    if isinstance(data, keras.utils.PyDataset):
        return BatchStream(data), None
    if not hasattr(data, "__len__"):
        raise _unknown(data)
    by_number = hasattr(data, "__getitem__")
    return ItemSource(data) if by_number else BatchStream(data), None


def check_parts(parts: Any) -> tuple[np.ndarray, ...]:
    """A batch as NumPy arrays, or an error unless it can be one."""
    parts = tuple(parts) if isinstance(parts, tuple | list) else (parts,)
    _check_structure(parts)
    parts = tuple(map(np.asarray, parts))
    ranks = [part.ndim for part in parts]
    if len(parts) not in (2, 3) or (ranks[0], *ranks[2:]) not in ((4,), (4, 1)):
        raise _unfit([part.shape for part in parts])
    return parts


def _check_structure(parts: Any) -> None:
    parts = parts if isinstance(parts, tuple) else (parts,)
    if len(parts) not in (2, 3) or any(not hasattr(part, "shape") for part in parts):
        raise _unfit([getattr(part, "shape", part) for part in parts])


def _unfit(received: Any) -> ValueError:
    return ValueError(
        "`data` must have batches of images (N, H, W, C), of labels and, if need "
        "be, of weights (N,) as elements. With other data, compile the model and "
        f"use `model.fit`. Received: {received}"
    )


def _unknown(data: Any) -> ValueError:
    count = f" of {len(data)}" if isinstance(data, tuple | list) else ""
    return ValueError(
        "`data` must be arrays (images, labels) or (images, labels, weights), as a "
        "tuple, a `tf.data.Dataset` or `keras.utils.PyDataset` of such batches, or "
        "a data set that is read by number. With other data, compile "
        f"the model and use `model.fit`. Received: a {type(data).__name__}{count}"
    )
