"""Test sets at several size factors, read in batches, and the model's scores."""

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keras_gdrn._checks import is_positive, shown
from keras_gdrn.models import Preprocess
from keras_gdrn.training._sources import CHECKED, as_targets, checked_images


def at_each_factor(
    evaluate: Callable[[Any], Any], datasets: Mapping[float, Any]
) -> tuple[np.ndarray, list]:
    """The size factors, ascending, and the result of `evaluate` for each."""
    if not isinstance(datasets, Mapping) or not datasets:
        raise ValueError(
            "`datasets` must map at least one size factor to its test data. "
            f"Received: datasets={shown(datasets)}"
        )
    for factor in datasets:
        if not is_positive(factor):
            raise ValueError(
                "The keys of `datasets` must be positive, finite size factors. "
                f"Received: {factor!r}"
            )
    factors, results = sorted(datasets), []
    for factor in factors:
        try:
            results.append(evaluate(datasets[factor]))
        except ValueError as error:
            raise ValueError(f"At size factor {float(factor):g}: {error}") from error
    return np.array(factors, "float64"), results


def check_datasets(model: keras.Model, datasets: Mapping[float, Any]) -> None:
    """Checks test data of a classifier before its training, as far as possible.

    Checks whole arrays. Of other data it checks the first batch, unless reading would
    consume it.
    """

    def check(data: Any) -> None:
        if isinstance(data, Iterator):
            return
        first = None if isinstance(data, tuple) else 1
        for images, labels in itertools.islice(_read(model, data, CHECKED), first):
            checked_images(images)
            as_classes(labels, (len(images), model.output_shape[-1]))

    at_each_factor(check, datasets)


def predictions(
    model: keras.Model, data: Any, batch_size: int
) -> Iterator[tuple[Any, Any]]:
    """Outputs of `model` for each batch of `data`, and the labels or `None`."""
    largest = 0
    for images, labels in _read(model, data, batch_size):
        if not (largest or _preprocesses(model)):
            _warn_of_values(images)
        largest = max(largest, len(images))
        yield _outputs(model, images, largest), labels


def _read(
    model: keras.Model, data: Any, batch_size: int
) -> Iterator[tuple[np.ndarray, Any]]:
    """Images that a model takes, and their labels or `None`; no empty batch."""
    expected = getattr(model, "input_shape", None)  # a subclassed model may not know
    is_empty = True
    for batch in _batches(data, batch_size):
        parts = batch if isinstance(batch, (tuple, list)) else (batch,)
        images, labels, *_ = (*parts, None)
        images = np.asarray(images)
        if expected and not (
            images.ndim == len(expected)
            and all(n in (None, m) for m, n in zip(images.shape, expected, strict=True))
        ):
            raise ValueError(
                f"the data must be batches of shape {expected}. "
                f"Received: an element of shape {images.shape}"
            )
        if len(images):
            is_empty = False
            yield images, labels
    if is_empty:
        raise ValueError("the data are empty.")


def _preprocesses(model: keras.Model) -> bool:
    """Whether the model takes 8-bit images too, as those of `from_preset` do."""
    return any(isinstance(layer, Preprocess) for layer in model.layers)


def _warn_of_values(images: np.ndarray) -> None:
    """Warns of values that `fit` refuses, as the model may have a `Rescaling`."""
    try:
        checked_images(images)
    except ValueError as error:
        warnings.warn(
            f"{error}. They are right if the model itself rescales them.", stacklevel=2
        )


def as_scores(output: Any) -> np.ndarray:
    """Scores `(batch, class)` in float64, as NumPy cannot order every dtype."""
    scores = np.asarray(output).astype("float64")
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise ValueError(
            "`model` must return scores (batch, class) of two or more classes. "
            f"Received: an output of shape {scores.shape}"
        )
    if not np.all(np.isfinite(scores)):
        bad = ~np.isfinite(scores).all(axis=1)
        raise ValueError(
            "the model's scores must be finite. Received: NaN or infinity for "
            f"{bad.sum()} of {len(scores)} images of a batch, first {bad.argmax()}"
        )
    return scores


def are_correct(scores: np.ndarray, labels: Any) -> np.ndarray:
    """Whether the highest score of each image is that of its label."""
    return np.argmax(scores, axis=-1) == as_classes(labels, scores.shape)


def as_classes(labels: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Classes `(batch,)` from integers, a column of them or one row per image."""
    if labels is None:
        raise ValueError("the data must be batches of images and labels.")
    labels, (batch, classes) = np.asarray(labels), shape
    if labels.shape[:1] != (batch,):
        raise ValueError(
            f"there must be as many labels as images, {batch}. "
            f"Received: labels of shape {labels.shape}"
        )
    return np.argmax(as_targets(labels, classes), axis=-1)


def _batches(data: Any, batch_size: int) -> Iterable:
    if hasattr(data, "cardinality") and int(data.cardinality()) == -1:
        raise ValueError("the data set is repeated without end.")
    if isinstance(data, keras.utils.PyDataset):
        return (data[i] for i in range(data.num_batches or 0))
    if isinstance(data, tuple) and len(data) == 2:
        images, labels = map(np.asarray, data)
        if len(images) != len(labels):
            raise ValueError(
                "there must be as many labels as images. "
                f"Received: shapes {images.shape} and {labels.shape}"
            )
        starts = range(0, len(images), batch_size)
        rows = [slice(start, start + batch_size) for start in starts]
        return ((images[part], labels[part]) for part in rows)
    received = type(data).__name__
    fits = isinstance(data, Iterable) and not isinstance(data, (str, Mapping))
    if isinstance(data, tuple) and any(hasattr(part, "shape") for part in data):
        fits, received = False, f"tuple of {len(data)} arrays"
    if not fits:
        raise ValueError(
            "the data must be a pair (images, labels) or an iterable of such batches. "
            f"Received: {received}"
        )
    return data


def _outputs(model: keras.Model, images: np.ndarray, full: int) -> Any:
    # A smaller last batch is padded, as another shape would be compiled again.
    count = len(images)
    images = np.concatenate([images, np.repeat(images[-1:], full - count, axis=0)])
    outputs = model.predict_on_batch(images)
    return keras.tree.map_structure(lambda output: output[:count], outputs)
