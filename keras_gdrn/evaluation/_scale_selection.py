"""Which scale channels decide, as a function of the size of the objects."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_gdrn.layers import ScaleChannels, ScalePooling

from ._test_data import as_scores, ascending, predictions


@dataclasses.dataclass(frozen=True, eq=False)
class ScaleSelectionHistogram:
    """Share of each scale channel in the decisions at each size factor.

    Attributes:
        factors: `(factor,)` size factors, ascending.
        sigma0: `(scale,)` initial scales of the scale channels, in the model's order.
        shares: `(factor, scale)`; each row sums to one.
    """

    factors: np.ndarray
    sigma0: np.ndarray
    shares: np.ndarray


def scale_selection_histogram(
    model: keras.Model, datasets: Mapping[float, Any], *, batch_size: int = 64
) -> ScaleSelectionHistogram:
    """Share that each scale channel has in the decisions, at several size factors.

    For each image the share of a channel in the pooled score of the predicted class
    (see `scale_shares`), averaged over all images, whether they are classified
    correctly or not. Labels are not looked at.

    Source: Perzanowski & Lindeberg, Sec. 6: "the relative contribution of each scale
    channel to the classification of test samples, for each spatial scaling factor".

    Args:
        model: Functional model that applies one `ScaleChannels` and one
            `ScalePooling`, such as those of `gauss_der_resnet`.
        datasets, batch_size: As `scale_generalisation`; labels may be absent.

    Raises:
        ValueError: As `scale_generalisation`, if `model` is of another kind, or if
            `scale_shares` refuses its scores.

    Example:

    >>> scale_selection_histogram(model, tests).shares.shape
    (9, 6)
    """
    scorer, pooling, sigma0 = _scorer(model)
    tests = ascending(datasets)
    shares = []
    for factor, data in tests.items():
        try:
            shares.append(_mean_shares(scorer, pooling, data, batch_size))
        except ValueError as error:
            raise ValueError(f"At size factor {factor:g}: {error}") from error
    return ScaleSelectionHistogram(np.array(list(tests)), sigma0, np.array(shares))


def scale_shares(scores: np.ndarray, pooling: str) -> np.ndarray:
    """What each scale channel contributes to pooled scores, as shares of one.

    Under `"max"` the channel that attains the maximum has all of it, and channels that
    tie have equal shares; under `"logsumexp"` a channel has its softmax weight, the
    derivative of the pooled score; under `"average"` its share of the sum, which takes
    scores `>= 0`, as the networks' last ReLU gives them. Where all scores of an image
    are the same, zero in particular, all channels have equal shares.

    Args:
        scores: `(batch, scale)`.
        pooling: `"max"`, `"logsumexp"` or `"average"`.

    Returns:
        float64 array `(batch, scale)`; rows sum to one.

    Raises:
        ValueError: If `pooling` is unknown, or `"average"` meets a negative score.

    Example:

    >>> scale_shares(np.array([[1.0, 3.0]]), "average")
    array([[0.25, 0.75]])
    """
    scores = np.asarray(scores, dtype="float64")
    highest = scores.max(axis=1, keepdims=True)
    if pooling == "max":
        weights = (scores == highest).astype("float64")
    elif pooling == "logsumexp":
        weights = np.exp(scores - highest)
    elif pooling == "average":
        if scores.min() < 0:
            raise ValueError(
                "a share of an average takes scores >= 0, such as a last ReLU gives. "
                f"Received: a score of {scores.min():g}"
            )
        weights = np.where(highest > 0, scores, 1.0)
    else:
        raise ValueError(
            "`pooling` must be 'max', 'logsumexp' or 'average'. "
            f"Received: pooling={pooling!r}"
        )
    return weights / weights.sum(axis=1, keepdims=True)


def _mean_shares(
    scorer: keras.Model, pooling: str, data: Any, batch_size: int
) -> np.ndarray:
    shares = []
    for (scores, output), _ in predictions(scorer, data, batch_size):
        predicted = np.argmax(as_scores(output), axis=-1)
        of_class = np.take_along_axis(
            np.asarray(scores), predicted[:, None, None], axis=-1
        )
        shares.append(scale_shares(of_class[..., 0], pooling))
    return np.concatenate(shares).mean(axis=0)


def _scorer(model: keras.Model) -> tuple[keras.Model, str, np.ndarray]:
    """A model that returns the scores that are pooled and its output; mode; σ_0."""
    for kind in (ScaleChannels, ScalePooling):
        _only(model, kind)
    # In a copy each layer is applied once, so that "its input" is one tensor; and the
    # graphs of the model's own layers, which other models may share, stay untouched.
    copy = keras.models.clone_model(model, clone_function=_copied)
    copy.set_weights(model.get_weights())
    channels, pooling = _only(copy, ScaleChannels), _only(copy, ScalePooling)
    scores, (output,) = pooling.input, copy.outputs
    if len(scores.shape) != 3 or scores.shape[2:] != output.shape[1:]:
        raise ValueError(
            "`model` must pool scores (batch, scale, class) to its output (batch, "
            f"class). Received: `ScalePooling` of {scores.shape} in a model with the "
            f"output {output.shape}"
        )
    scorer = keras.Model(copy.inputs, [scores, output])
    return scorer, pooling.mode, np.array(channels.sigma0)


def _copied(layer: keras.layers.Layer) -> keras.layers.Layer:
    if isinstance(layer, ScaleChannels):
        # With the same network: it need not be one that can be serialized.
        return ScaleChannels(
            layer.network, layer.sigma0, name=layer.name, dtype=layer.dtype_policy
        )
    return type(layer).from_config(layer.get_config())


def _only(model: keras.Model, kind: type) -> Any:
    found = [layer for layer in model.layers if isinstance(layer, kind)]
    if len(found) != 1:
        raise ValueError(
            f"`model` must apply one `{kind.__name__}` among its own layers. Received: "
            f"model={model.name!r} with {len(found)} of them"
        )
    return found[0]
