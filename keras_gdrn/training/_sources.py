"""What users bring: data read by number or batch by batch, and what is fit in them."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keras_gdrn.data._imresize import OVERSHOOT
from keras_gdrn.data._source import ArraySource, Source

# Digits of scikit-learn reach 16, images of 8 bits 255. Standardized images stay
# below this, even where one pixel in 200 is ink.
LARGEST = 15.0

# So many images of an array are checked at a time, so that intermediates stay small.
CHECKED = 512

_WANTED = (
    "Images must be floats in [0, 1] or, where no color jitter clips them, "
    "standardized: divide images of 8 bits by 255 "
    "(`images.astype('float32') / 255`). Received: "
)


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
        self.data, self.spec = data, getattr(data, "element_spec", None)
        # Height, width and channels, as far as they are known of all batches.
        self.shape: list[int | None] = [None] * 3
        if self.spec is not None:
            self.steps = int(data.cardinality())
            images = self.spec[0] if isinstance(self.spec, tuple) else self.spec
            if getattr(getattr(images, "shape", None), "rank", None) == 4:
                self.shape = list(images.shape)[1:]
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
        if self.spec is not None:
            yield from self.data.as_numpy_iterator()
        elif isinstance(self.data, keras.utils.PyDataset):
            yield from (self.data[number] for number in range(self.steps))
            self.data.on_epoch_end()
        else:
            yield from self.data

    def identity(self) -> Any:
        spec = "" if self.spec is None else str(self.spec)
        return f"{type(self.data).__name__} of {self.steps} batches {spec}".strip()


def as_source(data: Any) -> Source | BatchStream:
    """What `fit` takes, read by number where that is possible.

    Raises:
        ValueError: If it is nothing of the kind.
    """
    if issubclass(type(data), tuple) and len(data) in (2, 3):
        arrays = [np.asarray(part) for part in data]
        if any(not array.ndim for array in arrays):
            raise _unfit([array.shape for array in arrays])
        return ArraySource(*arrays)
    if hasattr(data, "source") and hasattr(data, "element_spec"):  # of this package
        return data.source
    if hasattr(data, "element_spec") or isinstance(data, keras.utils.PyDataset):
        return BatchStream(data)
    is_array = isinstance(data, tuple | list | str | Mapping) or hasattr(data, "dtype")
    if is_array or not hasattr(data, "__len__"):
        count = f" of {len(data)}" if isinstance(data, tuple | list) else ""
        raise ValueError(
            "`data` must be arrays (images, labels) or (images, labels, weights), as a "
            "tuple, a `tf.data.Dataset` or `keras.utils.PyDataset` of such batches, or "
            "a data set that is read by number. With other data, compile "
            f"the model and use `model.fit`. Received: a {type(data).__name__}{count}"
        )
    return ItemSource(data) if hasattr(data, "__getitem__") else BatchStream(data)


def check_parts(parts: Any) -> tuple[np.ndarray, ...]:
    """A batch as NumPy arrays, or an error unless it can be one."""
    parts = tuple(parts) if isinstance(parts, tuple | list) else (parts,)
    shapes = [getattr(part, "shape", part) for part in parts]
    if len(parts) not in (2, 3) or any(not hasattr(part, "shape") for part in parts):
        raise _unfit(shapes)
    ranks = [len(shape) for shape in shapes]
    if (ranks[0], *ranks[2:]) not in ((4,), (4, 1)):
        raise _unfit(shapes)
    return tuple(map(np.asarray, parts))


def _unfit(received: Any) -> ValueError:
    return ValueError(
        "`data` must have batches of images (N, H, W, C), of labels and, if need "
        "be, of weights (N,) as elements. With other data, compile the model and "
        f"use `model.fit`. Received: {received}"
    )


def check_image_type(images: Any) -> None:
    """Raises an error unless images, an array or a tensor, are floats or booleans."""
    kind = _type(images)
    if kind.kind not in "bfV":
        raise ValueError(f"{_WANTED}images of type {kind.name}")


def checked_images(images: np.ndarray, jitter: bool = False) -> np.ndarray:
    """The images as they are, or an error if they are of integers or far beyond 1.

    Args:
        images: An array.
        jitter: Whether their color is jittered: they must be in [0, 1] then, but for
            the overshoot of an interpolation.
    """
    check_image_type(images)
    if images.dtype == "bool" or not images.size:
        return images
    lowest, highest = images.min(), images.max()
    largest = np.maximum(-lowest, highest)
    if not largest <= LARGEST:
        raise ValueError(f"{_WANTED}values up to {largest}")
    # An interpolation may leave [0, 1] so far, which it does little harm to clip.
    if jitter and not (lowest >= -OVERSHOOT and highest <= 1 + OVERSHOOT):
        raise ValueError(
            "Images must be in [0, 1], to which color jitter clips them: standardize "
            "them inside the network, or train without brightness, contrast, "
            "saturation and hue. "
            f"Received: lowest and highest value {lowest} and {highest}"
        )
    return images


def check_label_type(labels: Any) -> None:
    """Raises an error unless labels are numbers."""
    kind = _type(labels)
    if kind.kind not in "biufV":
        first = labels.flat[:1].tolist() if isinstance(labels, np.ndarray) else []
        example = f", such as {first[0]!r}" if first else ""
        raise ValueError(
            "Labels must be integers, numbers of classes: number their names, "
            "for instance by `names, labels = np.unique(labels, return_inverse=True)`. "
            f"Received: labels of type {kind}{example}"
        )


def as_targets(labels: np.ndarray, classes: int) -> np.ndarray:
    """Labels `(N,)`, `(N, 1)` or one-hot as float32: `(N, classes)`.

    Of a model with one output, `(N, 1)`: zeros and ones.
    """
    check_label_type(labels)
    shape = labels.shape
    if len(shape) == 2 and shape[1] == classes > 1:
        labels = labels.astype("float32")
        message = "One-hot labels must be shares that add up to 1."
        fits = np.all(labels >= 0, axis=1) & (np.abs(labels.sum(axis=1) - 1) < 1e-3)
        return _all_fit(labels, fits, message)
    if shape not in (shape[:1], (*shape[:1], 1)):
        raise ValueError(
            f"Labels must be integers (N,) or (N, 1), or one-hot (N, {classes}), as "
            f"the model has {classes} outputs. For other targets, compile the model "
            f"and use `model.fit`. Received: labels of shape {shape}"
        )
    labels, count = labels.reshape(-1), max(classes, 2)
    message = f"Labels must number the {count} classes of the model from 0."
    _all_fit(labels, np.isin(labels.astype("float64"), range(count)), message)
    if classes > 1:
        return (labels[:, None] == np.arange(classes)).astype("float32")
    return labels[:, None].astype("float32")


def checked_weights(weights: np.ndarray) -> np.ndarray:
    """Weights of images as float32."""
    if weights.dtype.kind not in "biufV":
        raise ValueError(
            "Weights of images must be of a type of numbers. "
            f"Received: weights of type {weights.dtype}"
        )
    weights = weights.astype("float32")
    fits = (weights >= 0) & np.isfinite(weights)
    return _all_fit(weights, fits, "Weights of images must be finite numbers >= 0.")


def _all_fit(values: np.ndarray, fits: np.ndarray, message: str) -> np.ndarray:
    if not np.all(fits):
        raise ValueError(f"{message} Received: {values[~fits][:8]}")
    return values


def _type(array: Any) -> np.dtype:
    """That of an array or of a tensor. NumPy has no kind for bfloat16: it says "V"."""
    return np.dtype(getattr(array.dtype, "as_numpy_dtype", array.dtype))
