"""What a network costs: parameters, and an estimate of its multiply-adds."""

import math
from collections.abc import Sequence

import keras

from keras_gdrn.kernels import axis_factors, multi_indices
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.layers._windows import Window
from keras_gdrn.models._copies import only_layer


def parameters(model: keras.Model) -> int:
    """The number of trainable parameters, which is what the paper counts.

    Args:
        model: any, with its weights made.
    """
    return sum(math.prod(weight.shape) for weight in model.trainable_weights)


def multiply_adds(model: keras.Model) -> int:
    """Estimated multiply-adds of one forward pass for one image, all scales together.

    Counts the matrix products of the Gaussian derivative layers as
    `layer_multiply_adds` does, and the 1×1 projections, on the windows that are
    evaluated (see `ScaleChannels`). It is an estimate: batch normalization, activations
    and pooling are left out; a training step takes about three times as much; and time
    depends on more than the number of operations.

    Args:
        model: as `gauss_der_resnet` builds it, for images of a known size.

    Example:

    >>> multiply_adds(gauss_der_resnet((64, 64, 3), 10, [16, 32], 1.2, [1.0, 2.0]))
    10028240
    """
    channels = only_layer(model, ScaleChannels)
    return sum(
        _of_layer(layer, sigma0, given, asked)
        for layer, *windows in channels.convolutions(model.input_shape[1:-1])
        for sigma0, given, asked in zip(channels.sigma0, *windows, strict=True)
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
    outputs: Sequence[int] | None = None,
    influence: float = math.inf,
) -> int:
    """Multiply-adds of a `GaussDerConv` for one image at one scale.

    Those of its products (see `layers._jets`): into the low-rank basis, derivatives
    along all axes but the first, the channel mix, derivatives along the first axis, and
    back. They fall as σ grows, since the rank does.

    Args:
        sizes: of the image along each axis.
        channels, filters: of the input and of the output.
        sigma: scale in pixels.
        order, zero_order, separable, boundary, epsilon: as `GaussDerConv`.
        outputs, influence: as `kernels.axis_factors`, along each axis.
    """
    grid, total = list(sizes), 0

    def along(axis: int, length: int, width: int, products: int = 1) -> None:
        """Products along an axis, which has so many pixels afterwards."""
        nonlocal total
        total += products * length * math.prod(grid) * width
        grid[axis] = length

    axes = [
        axis_factors(size, sigma, order, boundary, epsilon, asked, influence)
        for size, asked in zip(sizes, outputs or sizes, strict=True)
    ]
    indices = multi_indices(len(axes), order, zero_order)
    after = channels if separable else filters
    for number, axis in enumerate(axes):
        if axis.analysis is not None:
            along(number, axis.ranks[0], channels)
    for number in reversed(range(1, len(axes))):
        endings = {alpha[number:] for alpha in indices}
        along(number, axes[number].ranks[1], channels, len(endings))
    mix = math.prod(grid) * len(indices) * channels
    total += mix if separable else mix * filters
    along(0, axes[0].ranks[1], after, len({alpha[0] for alpha in indices}))
    for number, axis in reversed(list(enumerate(axes))):
        if axis.synthesis is not None:
            along(number, axis.outputs, after)
    return total + (math.prod(grid) * channels * filters if separable else 0)


def largest_scale(model: keras.Model) -> float:
    """The largest σ of any layer in any scale channel, in pixels."""
    channels = only_layer(model, ScaleChannels)
    layers = channels.convolutions(model.input_shape[1:-1])
    relative = max(
        layer.sigma for layer, *_ in layers if isinstance(layer, GaussDerConv)
    )
    return relative * max(channels.sigma0)


def _of_layer(
    layer: keras.layers.Layer, sigma0: float, given: Window, asked: Window
) -> int:
    channels, filters = layer.kernel.shape[-2:]
    if not isinstance(layer, GaussDerConv):
        return math.prod(asked.sizes) * channels * filters
    return layer_multiply_adds(
        given.sizes,
        channels,
        filters,
        sigma0 * layer.sigma,
        order=layer.order,
        zero_order=(0,) * len(given.sizes) in layer.indices,
        separable=layer.separable,
        boundary=layer.boundary,
        epsilon=layer.epsilon,
        outputs=asked.sizes,
        influence=asked.influence,
    )
