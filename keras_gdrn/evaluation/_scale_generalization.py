"""Accuracy as a function of the size of the objects."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_gdrn.evaluation._test_data import (
    are_correct,
    as_scores,
    at_each_factor,
    predictions,
)


@dataclasses.dataclass(frozen=True, eq=False)
class ScaleGeneralization:
    """Accuracy at each size factor.

    Attributes:
        factors: `(factor,)` size factors, ascending.
        accuracies: `(factor,)` shares of correctly classified images.
    """

    factors: np.ndarray
    accuracies: np.ndarray


def scale_generalization(
    model: keras.Model, datasets: Mapping[float, Any], *, batch_size: int = 64
) -> ScaleGeneralization:
    """Accuracy of a classifier on copies of a test set at several size factors.

    Source: Perzanowski & Lindeberg, the scale generalization curves of Sec. 6.

    Args:
        model: Any model from images to scores `(batch, class)`.
        datasets: For each size factor the arrays `(images, labels)`, or batches of
            them: a `tf.data.Dataset`, a `keras.utils.PyDataset`, a PyTorch
            `DataLoader`, any iterable. Labels are integers `(batch,)` or `(batch, 1)`,
            or rows `(batch, class)`, one-hot or smoothed. Each data set is read once.
        batch_size: Images in a batch, for data sets given as arrays.

    Returns:
        A `ScaleGeneralization`.

    Raises:
        ValueError: If there is no data set or one is empty, endless or not in batches,
            a size factor is not a positive number, the images have another shape than
            the model takes, the labels do not fit the scores, or a score is not finite.

    Warns:
        UserWarning: If images are integers or have values far beyond 1, which is right
            only for a model that rescales them itself.

    Example:

    >>> tests = {f: rescaled("digits", "test", f, batch_size=64) for f in SIZE_FACTORS}
    >>> scale_generalization(model, tests).accuracies.shape
    (9,)
    """

    def accuracy(data: Any) -> float:
        batches = predictions(model, data, batch_size)
        correct = [are_correct(as_scores(output), labels) for output, labels in batches]
        return float(np.mean(np.concatenate(correct)))

    factors, accuracies = at_each_factor(accuracy, datasets)
    return ScaleGeneralization(factors, np.array(accuracies))
