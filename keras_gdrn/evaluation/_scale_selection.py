"""Which scale channels decide, as a function of the size of the objects."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np

from keras_gdrn._checks import check_choice
from keras_gdrn.evaluation._test_data import (
    are_correct,
    as_scores,
    at_each_factor,
    predictions,
)
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.layers.scale_pooling import MODES
from keras_gdrn.models import only_layer
from keras_gdrn.models._graph import also_returning_input_of


@dataclasses.dataclass(frozen=True, eq=False)
class ScaleSelectionHistogram:
    """Share of each scale channel in the decisions at each size factor.

    Attributes:
        factors: `(factor,)` size factors, ascending.
        sigma0: `(scale,)` initial scales of the scale channels, in the model's order.
        shares: `(factor, scale)`; each row sums to one.
        accuracies: `(factor,)` shares of correctly classified images, as
            `scale_generalization` gives them; `None` where the data have no labels.
    """

    factors: np.ndarray
    sigma0: np.ndarray
    shares: np.ndarray
    accuracies: np.ndarray | None = None


def scale_selection_histogram(
    model: keras.Model, datasets: Mapping[float, Any], *, batch_size: int = 64
) -> ScaleSelectionHistogram:
    """Share of each scale channel in the decisions, at several size factors.

    A channel's share in the pooled score of the predicted class (see `scale_shares`) is
    averaged over all images, classified correctly or not. If the data have labels, the
    same pass finds the accuracies of `scale_generalization`.

    Source: Perzanowski & Lindeberg, Sec. 6: "the relative contribution of each scale
    channel to the classification of test samples, for each spatial scaling factor".

    Args:
        model: Functional model that applies one `ScaleChannels` and one
            `ScalePooling`, such as those of `gauss_der_resnet`.
        datasets, batch_size: As `scale_generalization`; labels may be missing, but then
            at all size factors.

    Returns:
        A `ScaleSelectionHistogram`.

    Raises:
        ValueError: As `scale_generalization`, if some batches have labels and others
            have none, `model` is of another kind, or `scale_shares` refuses its scores.

    Example:

    >>> histogram = scale_selection_histogram(model, tests)
    >>> histogram.shares.shape, histogram.accuracies.shape
    ((9, 6), (9,))
    """
    scorer, pooling, sigma0 = _scorer(model)
    labeled: set[bool] = set()  # over all factors, so that an error comes early
    factors, decisions = at_each_factor(
        lambda data: _decisions(
            predictions(scorer, data, batch_size), pooling, labeled
        ),
        datasets,
    )
    shares, accuracies = (np.array(values) for values in zip(*decisions, strict=True))
    return ScaleSelectionHistogram(
        factors, sigma0, shares, accuracies if True in labeled else None
    )


def scale_shares(scores: np.ndarray, pooling: str) -> np.ndarray:
    """Contribution of each scale channel to pooled scores, as shares of one.

    For `"max"`, the channel with the maximum has all of it, and ties share it equally.
    For `"logsumexp"`, a channel has its softmax weight, the derivative of the pooled
    score. For `"average"`, it has its share of the sum; scores must be `>= 0`, as after
    the networks' last ReLU. If all scores of an image are equal, zero in particular,
    all channels have equal shares.

    Args:
        scores: `(batch, scale)`.
        pooling: `"max"`, `"logsumexp"` or `"average"`.

    Returns:
        A float64 array `(batch, scale)`; rows sum to one.

    Raises:
        ValueError: If `pooling` is unknown, or a score is negative for `"average"`.

    Example:

    >>> scale_shares(np.array([[1.0, 3.0]]), "average")
    array([[0.25, 0.75]])
    """
    check_choice("pooling", pooling, MODES)
    scores = np.asarray(scores, dtype="float64")
    highest = scores.max(axis=1, keepdims=True)
    if pooling == "max":
        weights = (scores == highest).astype("float64")
    elif pooling == "logsumexp":
        weights = np.exp(scores - highest)
    elif scores.min() < 0:
        raise ValueError(
            "`scores` must be >= 0 for shares of an average, as after a last ReLU. "
            f"Received: a score of {scores.min():g}"
        )
    else:
        weights = np.where(highest > 0, scores, 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _decisions(
    batches: Iterable[tuple], pooling: str, labeled: set[bool]
) -> tuple[np.ndarray, float | None]:
    """Mean shares, and the accuracy if there are labels; `labeled` records that."""
    shares, correct = [], []
    for (scores, output), labels in batches:
        labeled.add(labels is not None)
        if len(labeled) > 1:
            raise ValueError(
                "all data sets must have labels, or none of them. Received: batches "
                "with labels and batches without"
            )
        pooled = as_scores(output)
        predicted = np.argmax(pooled, axis=-1)[:, None, None]
        of_predicted = np.take_along_axis(np.asarray(scores), predicted, axis=-1)
        shares.append(scale_shares(of_predicted[..., 0], pooling))
        if labels is not None:
            correct.append(are_correct(pooled, labels))
    accuracy = float(np.mean(np.concatenate(correct))) if correct else None
    return np.concatenate(shares).mean(axis=0), accuracy


def _scorer(model: keras.Model) -> tuple[keras.Model, str, np.ndarray]:
    """A model that returns scores before and after pooling; the mode; σ_0."""
    kinds = (ScaleChannels, ScalePooling)
    channels, pooling = (only_layer(model, kind) for kind in kinds)
    scorer = also_returning_input_of(model, pooling)
    scores, output = scorer.outputs
    if len(scores.shape) != 3 or scores.shape[2:] != output.shape[1:]:
        raise ValueError(
            "`model` must pool scores (batch, scale, class) to its output (batch, "
            f"class). Received: `ScalePooling` of {scores.shape} in a model with the "
            f"output {output.shape}"
        )
    return scorer, pooling.mode, np.array(channels.sigma0)
