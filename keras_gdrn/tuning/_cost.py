"""What a network costs: its parameters, and an estimate of its multiply-adds."""

import math
from collections.abc import Sequence

import keras

from keras_gdrn.kernels import AxisFactors
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.layers._fine_scales import is_fine
from keras_gdrn.layers._operators import constant_factors
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
    total = 0
    for layer, entering, leaving in convolutions:
        if isinstance(layer, GaussDerConv):
            windows = (layer.sigma, entering, leaving)
            how = (layer.order, layer.boundary, layer.epsilon)
            for axes in constant_factors(*windows, *how):
                total += layer_multiply_adds(layer, axes)
        else:  # the projection of a block
            pixels = sum(math.prod(window.sizes) for window in leaving.of_scales)
            total += pixels * math.prod(layer.kernel.shape)
    return total


def layer_multiply_adds(layer: GaussDerConv, axes: Sequence[AxisFactors]) -> int:
    """Multiply-adds of a layer for one image at one scale, with its factors there.

    Those of its products (see `layers._jets`): into the low-rank basis, derivatives
    along all axes but the first, the channel mix, derivatives along the first axis, and
    back. They fall as σ grows, since the rank does. At fine scales those of smoothing
    along each axis and of one convolution (see `layers._fine_scales`).
    """
    *_, channels, filters = layer.kernel.shape
    mix = layer.depthwise_kernel if layer.separable else layer.kernel
    sizes, numbers = [axis.size for axis in axes], range(len(axes))
    if is_fine(axes, mix):
        composed = [axis.composed for axis in axes if axis.composed]
        taps = sum(len(axis.smoothing.kernel) for axis in composed)
        width = max(len(order) for axis in composed for order in axis.orders)
        return math.prod(sizes) * channels * (taps + width ** len(axes) * filters)
    mixed = channels if layer.separable else filters
    # Along which axis, by which matrix, of how many maps.
    products = [(n, axes[n].analysis, channels) for n in numbers]
    for n in reversed(numbers[1:]):
        responses = len({alpha[n:] for alpha in layer.indices})
        products.append((n, axes[n].jets[0], channels * responses))
    responses = len({alpha[0] for alpha in layer.indices})
    products.append((0, axes[0].jets[0], mixed * responses))
    products += [(n, axes[n].synthesis, mixed) for n in reversed(numbers)]
    first, *others = (axis.ranks for axis in axes)
    positions = first[0] * math.prod(outputs for _, outputs in others)
    total = positions * math.prod(mix.shape)
    for n, matrix, maps in products:
        if matrix is not None:  # of a sparse one, the size is that of its entries
            total += maps * math.prod(sizes) // sizes[n] * matrix.size
            sizes[n] = matrix.shape[0]
    return total + (math.prod(sizes) * channels * filters if layer.separable else 0)
