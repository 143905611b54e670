"""What a network costs: parameters, and an estimate of its multiply-adds."""

import math
from collections.abc import Iterator, Sequence

import keras

from keras_gdrn.kernels import axis_factors, multi_indices
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock, ScaleChannels
from keras_gdrn.models._copies import only_layer


def parameters(model: keras.Model) -> int:
    """The number of trainable parameters, which is what the paper counts."""
    return sum(math.prod(weight.shape) for weight in model.trainable_weights)


def multiply_adds(model: keras.Model) -> int:
    """Estimated multiply-adds of one forward pass for one image, all scales together.

    Counts the matrix products of the Gaussian derivative layers as
    `layer_multiply_adds` does, and the 1×1 projections. It is an estimate: batch
    normalization, activations and pooling are left out; a training step takes about
    three times as much; and time depends on more than the number of operations.

    Args:
        model: as `gauss_der_resnet` builds it, for images of a known size.

    Example:

    >>> multiply_adds(gauss_der_resnet((64, 64, 3), 10, [16, 32], 1.2, [1.0, 2.0]))
    359360256
    """
    channels = only_layer(model, ScaleChannels)
    sizes = model.input_shape[1:-1]
    return sum(
        _of_layer(layer, sizes, sigma0)
        for layer in _convolutions(channels.network)
        for sigma0 in channels.sigma0
    )


def layer_multiply_adds(
    sizes: Sequence[int],
    channels: int,
    filters: int,
    sigma: float,
    *,
    order: int = 2,
    zero_order: bool = False,
    separable: bool = False,
    boundary: str = "zero",
    epsilon: float = 1e-3,
) -> int:
    """Multiply-adds of a `GaussDerConv` for one image at one scale.

    Those of its products (see `kernels.axis_factors`): into the low-rank basis, the
    jet along each axis, the channel mix on the coefficients, and back. They fall as σ
    grows, since the rank does.

    Args:
        sizes: of the image along each axis.
        channels, filters: of the input and of the output.
        sigma: scale in pixels.
        order, zero_order, separable, boundary, epsilon: as `GaussDerConv`.
    """
    axes = [axis_factors(size, sigma, order, boundary, epsilon) for size in sizes]
    ranks = [axis.jets[0].shape[0] for axis in axes]
    coefficients = math.prod(ranks)
    indices = multi_indices(len(sizes), order, zero_order)
    change = sum(
        math.prod(ranks[: number + 1]) * math.prod(sizes[number:])
        for number, axis in enumerate(axes)
        if axis.analysis is not None
    )
    # Multi-indices that end alike share the products along the last axes.
    jet = sum(
        rank * coefficients * len({alpha[number:] for alpha in indices})
        for number, rank in enumerate(ranks)
    )
    mix = coefficients * len(indices) * channels
    if separable:
        pointwise = math.prod(sizes) * channels * filters
        return (2 * change + jet) * channels + mix + pointwise
    return change * (channels + filters) + jet * channels + mix * filters


def largest_scale(model: keras.Model) -> float:
    """The largest σ of any layer in any scale channel, in pixels."""
    channels = only_layer(model, ScaleChannels)
    layers = _convolutions(channels.network)
    relative = max(layer.sigma for layer in layers if isinstance(layer, GaussDerConv))
    return relative * max(channels.sigma0)


def _convolutions(network: keras.Model) -> Iterator[keras.layers.Layer]:
    for layer in network.layers:
        if isinstance(layer, GaussDerConv):
            yield layer
        elif isinstance(layer, GaussDerResidualBlock):
            parts = (layer.conv1, layer.conv2, layer.projection)
            yield from (part for part in parts if part is not None)


def _of_layer(layer: keras.layers.Layer, sizes: Sequence[int], sigma0: float) -> int:
    channels, filters = layer.kernel.shape[-2:]
    if not isinstance(layer, GaussDerConv):
        return math.prod(sizes) * channels * filters
    return layer_multiply_adds(
        sizes,
        channels,
        filters,
        sigma0 * layer.sigma,
        order=layer.order,
        zero_order=(0,) * len(sizes) in layer.indices,
        separable=layer.separable,
        boundary=layer.boundary,
        epsilon=layer.epsilon,
    )
