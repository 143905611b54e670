"""Labels of several kinds, as what the loss takes."""

from typing import Any

import numpy as np

from keras_gdrn.training._tensors import (
    has_numbers,
    namespace,
    numpy_dtype,
    required,
)


def check_labels(labels: Any, classes: int) -> None:
    """Raises an error unless labels are of a known type and shape.

    Args:
        labels: An array of them, or the specification of a batch.
        classes: Number of outputs of the model.
    """
    check_label_type(labels)
    shape = tuple(labels.shape)
    if len(shape) != 1 and (len(shape) != 2 or shape[1] not in (1, classes)):
        raise ValueError(
            f"Labels must be integers (N,) or (N, 1), or one-hot (N, {classes}), as "
            f"the model has {classes} outputs. For other targets, compile the model "
            f"and use `model.fit`. Received: labels of shape {shape}"
        )


def check_label_type(labels: Any) -> None:
    """Raises an error unless labels, or their specification, are of numbers."""
    if not has_numbers(labels):
        first = labels.flat[:1].tolist() if isinstance(labels, np.ndarray) else []
        example = f", such as {first[0]!r}" if first else ""
        raise ValueError(
            "Labels must be integers, numbers of classes: number their names, "
            "for instance by `names, labels = np.unique(labels, return_inverse=True)`. "
            f"Received: labels of type {numpy_dtype(labels)}{example}"
        )


def as_targets(labels: Any, classes: int) -> Any:
    """Labels `(N,)`, `(N, 1)` or one-hot as float32: `(N, classes)`.

    Of a model with one output, `(N, 1)`: zeros and ones.
    """
    xp = namespace(labels)
    if classes > 1 and len(labels.shape) == 2 and labels.shape[1] == classes:
        labels = xp.asarray(labels, dtype="float32")
        sums = xp.sum(labels, axis=1)
        fits = xp.all(labels >= 0, axis=1) & (xp.abs(sums - 1) < 1e-3)
        message = "One-hot labels must be shares that add up to 1. Received:"
        return required(labels, xp.all(fits), message, labels[~fits][:1])
    labels = xp.reshape(labels, (-1,))
    with np.errstate(invalid="ignore"):
        numbers = xp.asarray(labels, dtype="int32")
    count = max(classes, 2)
    whole = xp.asarray(numbers, dtype=labels.dtype) == labels
    fits = whole & (numbers >= 0) & (numbers < count)
    message = f"Labels must number the {count} classes of the model from 0. Received:"
    unfit = labels[~fits][:8]
    numbers = required(numbers, xp.all(fits), message, unfit)[:, None]
    if classes > 1:
        numbers = numbers == xp.arange(classes, dtype="int32")
    return xp.asarray(numbers, dtype="float32")
