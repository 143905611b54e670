"""What a network costs: its parameters, and an estimate of its multiply-adds."""

import math
from collections.abc import Sequence
from typing import Any

import keras

from keras_gdrn.kernels import AxisFactors
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.layers._fine_scales import is_fine
from keras_gdrn.layers._operators import constant_factors
from keras_gdrn.layers._windows import Windows
from keras_gdrn.models._copies import only_layer


def parameters(model: keras.Model) -> int:
    """The number of trainable parameters, which is what the paper counts.

    Args:
        model: Any model that is built.

    Returns:
        The number.
    """
    return sum(math.prod(weight.shape) for weight in model.trainable_weights)


def multiply_adds(model: keras.Model) -> int:
    """Estimated multiply-adds of one forward pass for one image, all scales together.

    Counts the matrix products of the Gaussian derivative layers and the 1×1
    projections, on the windows that are evaluated (see `ScaleChannels`), and leaves out
    normalization, activations and pooling. A training step takes three times as much.

    Args:
        model: Model as `gauss_der_resnet` builds it, for images of a known size.

    Returns:
        The number, for all scale channels.

    Raises:
        ValueError: If `model` is not such a network.

    Example:

    >>> multiply_adds(gauss_der_resnet((64, 64, 3), 10, [16, 32], 1.2, [1.0, 2.0]))
    5567222
    """
    channels, spatial = only_layer(model, ScaleChannels), model.input_shape[1:-1]
    convolutions = [] if None in spatial else list(channels.convolutions(spatial))
    if not convolutions:
        raise ValueError(
            "`model` must be for images of a known size, and its layers must act at "
            "each position or be layers of keras_gdrn. Received: "
            f"model={model.name!r} with the input shape {model.input_shape}"
        )
    return sum(_of_convolution(*convolution) for convolution in convolutions)


def _of_convolution(
    layer: keras.layers.Layer, entering: Windows, leaving: Windows
) -> int:
    """Multiply-adds of a convolution, or of a block's projection, at all scales."""
    if not isinstance(layer, GaussDerConv):
        pixels = sum(math.prod(window.sizes) for window in leaving.of_scales)
        return pixels * math.prod(layer.kernel.shape)
    windows = (layer.sigma, entering, leaving)
    factors = constant_factors(*windows, layer.order, layer.boundary, layer.epsilon)
    return sum(layer_multiply_adds(layer, axes) for axes in factors)


def layer_multiply_adds(layer: GaussDerConv, axes: Sequence[AxisFactors]) -> int:
    """Multiply-adds of a layer for one image at one scale.

    Those of its products (see `layers._jets`): into the low-rank basis, derivatives
    along all axes but the first, the channel mix, derivatives along the first axis, and
    back. They fall as σ grows, since the rank does. At fine scales those of smoothing
    and of one convolution.

    Args:
        layer: Layer that is built.
        axes: Factors of the layer along each axis at this scale.
    """
    channels, filters = layer.kernel.shape[-2:]
    jet_kernel = layer.depthwise_kernel if layer.separable else layer.kernel
    if is_fine(axes, jet_kernel):
        return _of_fine_scale(axes, channels, filters)
    mixed = channels if layer.separable else filters
    grid, total = [axis.size for axis in axes], 0

    def multiply(number: int, matrix: Any, times: int) -> None:
        """So many products along an axis, which then has as many pixels as it gives."""
        nonlocal total  # of a sparse matrix, its size is that of its entries
        total += times * math.prod(grid) // grid[number] * matrix.size
        grid[number] = matrix.shape[0]

    for number, axis in enumerate(axes):
        if axis.analysis is not None:
            multiply(number, axis.analysis, channels)
    for number in reversed(range(1, len(axes))):
        responses = len({alpha[number:] for alpha in layer.indices})
        multiply(number, axes[number].jets[0], channels * responses)
    mix = math.prod(grid) * len(layer.indices) * channels
    total += mix if layer.separable else mix * filters
    responses = len({alpha[0] for alpha in layer.indices})
    multiply(0, axes[0].jets[0], mixed * responses)
    for number, axis in reversed(list(enumerate(axes))):
        if axis.synthesis is not None:
            multiply(number, axis.synthesis, mixed)
    return total + (math.prod(grid) * channels * filters if layer.separable else 0)


def _of_fine_scale(axes: Sequence[AxisFactors], channels: int, filters: int) -> int:
    """Smoothing along each axis, and the convolution (see `layers._fine_scales`)."""
    pixels = math.prod(axis.size for axis in axes)
    composed = [axis.composed for axis in axes if axis.composed]
    taps = sum(len(axis.smoothing.kernel) for axis in composed)
    width = max(len(difference) for axis in composed for difference in axis.orders)
    return pixels * channels * (taps + width ** len(axes) * filters)
