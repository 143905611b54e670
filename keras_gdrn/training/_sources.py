"""The data of `fit`, read by index or batch by batch, and their checks."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keras_gdrn._checks import is_integer, is_number
from keras_gdrn._pixels import MAX_UNDERSHOOT
from keras_gdrn.data._source import ArraySource

# Digits of scikit-learn reach 16, images of 8 bits 255. Standardized images stay
# below this, even where one pixel in 200 is ink.
LARGEST = 15.0

# Images of an array checked at a time, so that intermediates stay small.
CHECKED = 512

_WANTED = (
    "Images must be floats in [0, 1] or, without color jitter, standardized: "
    "divide 8-bit images by 255 "
    "(`images.astype('float32') / 255`). Received: "
)


class ItemSource:
    """As `ArraySource`, for a data set whose images are read one by one."""

    def __init__(self, data: Any):
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def take(self, index: np.ndarray) -> tuple[np.ndarray, ...]:
        items = [tuple(self.data[int(number)]) for number in index]
        return tuple(np.stack(parts) for parts in zip(*items, strict=True))

    def fingerprint(self) -> Any:
        return f"{type(self.data).__name__} of {len(self)} images"


class BatchStream:
    """Batches that the data make, in their own order."""

    def __init__(self, data: Any):
        self.data, self.is_indexed = data, isinstance(data, keras.utils.PyDataset)
        if hasattr(data, "cardinality"):
            self.steps = int(data.cardinality())
        else:
            self.steps = (data.num_batches or -1) if self.is_indexed else len(data)
        if self.steps <= 0:
            raise ValueError(
                "`data` must have a known, finite number of batches. "
                f"Received: a cardinality of {self.steps}"
            )

    def epoch(self) -> Iterator[tuple]:
        """The batches of one iteration."""
        if self.is_indexed:
            yield from (self.data[number] for number in range(self.steps))
            self.data.on_epoch_end()
            return
        of_tensors = hasattr(self.data, "as_numpy_iterator")
        batches = self.data.as_numpy_iterator() if of_tensors else self.data
        yield from itertools.islice(batches, self.steps)

    def fingerprint(self) -> Any:
        spec = getattr(self.data, "element_spec", "")
        return f"{type(self.data).__name__} of {self.steps} batches {spec}".strip()


def as_source(data: Any) -> ArraySource | ItemSource | BatchStream:
    """The data that `fit` takes, read by index if possible."""
    if issubclass(type(data), tuple) and len(data) in (2, 3):
        arrays = [np.asarray(part) for part in data]
        if not all(array.ndim for array in arrays):
            raise _data_error([array.shape for array in arrays])
        return ArraySource(*arrays)
    if isinstance(getattr(data, "source", None), ArraySource):  # of this package
        return data.source
    if hasattr(data, "element_spec") or isinstance(data, keras.utils.PyDataset):
        return BatchStream(data)
    is_array = isinstance(data, tuple | list | str | Mapping) or hasattr(data, "dtype")
    if is_array or not hasattr(data, "__len__"):
        raise _data_error(f"a {type(data).__name__}")
    return ItemSource(data) if hasattr(data, "__getitem__") else BatchStream(data)


def as_arrays(parts: Any) -> tuple[np.ndarray, ...]:
    """A batch as NumPy arrays, or an error if it is none."""
    parts = tuple(parts) if isinstance(parts, tuple | list) else (parts,)
    are_arrays = all(hasattr(part, "shape") for part in parts)
    ranks = [len(part.shape) for part in parts] if are_arrays else []
    if [*ranks[:1], *ranks[2:]] not in ([4], [4, 1]) or len(ranks) == 1:
        raise _data_error([getattr(part, "shape", part) for part in parts])
    return tuple(map(np.asarray, parts))


def _data_error(received: Any) -> ValueError:
    return ValueError(
        "`data` must be a tuple of arrays (images, labels) or (images, labels, "
        "weights), of shapes (N, H, W, C), (N,) or one-hot, and (N,); a "
        "`tf.data.Dataset` or `keras.utils.PyDataset` of such batches; or a data set "
        "read by index. With other data, compile the model and use `model.fit`. "
        f"Received: {received}"
    )


def checked_images(images: np.ndarray, jitter: bool = False) -> np.ndarray:
    """The images, or an error if they are integers or far beyond 1.

    For color jitter they must be in [0, 1], except for the overshoot of interpolation.
    """
    if images.dtype.kind not in "bfV":  # "V" is bfloat16, unknown to NumPy
        raise ValueError(f"{_WANTED}images of type {images.dtype}")
    if images.dtype == "bool" or not images.size:
        return images
    lowest, highest = images.min(), images.max()
    largest = np.maximum(-lowest, highest)
    if not largest <= LARGEST:
        raise ValueError(f"{_WANTED}values up to {largest}")
    # Interpolation may exceed [0, 1] by this much; clipping it does little harm.
    in_range = lowest >= -MAX_UNDERSHOOT and highest <= 1 + MAX_UNDERSHOOT
    if jitter and not (in_range and images.shape[-1] in (1, 3)):
        raise ValueError(
            "For color jitter, images must have 1 or 3 channels and be in [0, 1], to "
            "which it clips: standardize them inside the network, or train without "
            "brightness, contrast, saturation and hue. Received: lowest and highest "
            f"value {lowest} and {highest}, shape {images.shape}"
        )
    return images


def as_targets(labels: np.ndarray, classes: int) -> np.ndarray:
    """Labels `(N,)`, `(N, 1)` or one-hot as float32: `(N, classes)`."""
    if labels.dtype.kind not in "biufV":
        raise ValueError(
            "Labels must be class numbers, as integers: number their names, for "
            "instance by `names, labels = np.unique(labels, return_inverse=True)`. "
            f"Received: labels of type {labels.dtype}, {labels.flat[:1].tolist()}"
        )
    if labels.ndim == 2 and labels.shape[1] == classes:
        labels = labels.astype("float32")
        fits = np.all(labels >= 0, axis=1) & (np.abs(labels.sum(axis=1) - 1) < 1e-3)
        return _all_fit(labels, fits, "One-hot labels must be >= 0 and add up to 1.")
    if labels.ndim != 1 and labels.shape[1:] != (1,):
        raise ValueError(
            f"Labels must be integers (N,) or (N, 1), or one-hot (N, {classes}), as "
            f"the model has {classes} outputs. For other targets, compile the model "
            f"and use `model.fit`. Received: labels of shape {labels.shape}"
        )
    labels, numbers = labels.reshape(-1).astype("float64"), np.arange(classes)
    message = f"Labels must be numbers of the {classes} classes of the model, from 0."
    labels = _all_fit(labels, np.isin(labels, numbers), message)
    return (labels[:, None] == numbers).astype("float32")


def checked_weights(weights: np.ndarray) -> np.ndarray:
    """Sample weights as float32, or an error unless they are finite and >= 0."""
    weights = weights.astype("float32")
    fits = np.isfinite(weights) & (weights >= 0)
    return _all_fit(weights, fits, "Weights of images must be finite and >= 0.")


def _all_fit(values: np.ndarray, fits: np.ndarray, message: str) -> np.ndarray:
    if not np.all(fits):
        raise ValueError(f"{message} Received: {values[~fits][:8]}")
    return values


def as_class_weight(weights: Any, classes: int) -> dict[int, float] | None:
    """The weight of every class, by default 1 as in Keras."""
    if weights is None:
        return None
    fits = isinstance(weights, Mapping) and all(
        is_integer(key)
        and 0 <= key < classes
        and is_number(value)
        and 0 <= value < math.inf
        for key, value in weights.items()
    )
    if not fits:
        raise ValueError(
            f"`class_weight` must map class numbers, 0 to {classes - 1}, to "
            f"finite weights >= 0. Received: class_weight={weights!r}"
        )
    given = {int(key): float(value) for key, value in weights.items()}
    return {n: given.get(n, 1.0) for n in range(classes)} if given else None
