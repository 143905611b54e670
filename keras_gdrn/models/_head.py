"""Initializers of the last layer of a scale channel."""

from typing import Any

import keras

from keras_gdrn._checks import check_choice

# Uniform He initialization has the scale 2; these weights are a fifth as large.
_SCALE = 2.0 * 0.2**2
HEAD_INITIALIZERS = ("positive", "he_uniform")


def head_initializers(
    kind: str = "positive", *, zero_order: bool = False
) -> dict[str, Any]:
    """Initializers of a scale channel's last layer, as arguments of `GaussDerConv`.

    The last layer ends in a ReLU. A class whose scores are negative for all images has
    no gradient, and is lost for good. With He's weights and zero biases, half of the
    scores start cut off: training one scale channel with central selection lost one or
    more classes in most runs on MNIST. `"positive"` is for that case, with weights a
    fifth as large as He's, and biases that lift all scores above zero. `"he_uniform"`
    is the paper's initialization. Six scale channels trained together from the start
    lost no class with it either, and were as accurate.

    Source: `"he_uniform"`: Perzanowski & Lindeberg, Sec. 5.2.

    Args:
        kind: `"positive"` or `"he_uniform"`.
        zero_order: Whether the layer has the zero-order term. Scores then vary more,
            as maps after a ReLU do not cancel in it, and biases are 1 instead of 0.2.

    Returns:
        `kernel_initializer` and `bias_initializer`.

    Raises:
        ValueError: If `kind` is unknown.

    Example:

    >>> head = GaussDerConv(10, sigma=1.44, activation="relu", **head_initializers())
    >>> head.bias_initializer.value
    0.2
    """
    check_choice("head_initializer", kind, HEAD_INITIALIZERS)
    if kind == "he_uniform":
        return {"kernel_initializer": "he_uniform", "bias_initializer": "zeros"}
    return {
        "kernel_initializer": keras.initializers.VarianceScaling(
            _SCALE, "fan_in", "uniform"
        ),
        "bias_initializer": keras.initializers.Constant(1.0 if zero_order else 0.2),
    }
