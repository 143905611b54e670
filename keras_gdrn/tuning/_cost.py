"""What a network and a search cost: parameters, and an estimate of multiply-adds."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import keras_tuner

from keras_gdrn.kernels import AxisFactors
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.layers._operators import constant_factors
from keras_gdrn.layers._windows import Windows
from keras_gdrn.models import with_sigma0
from keras_gdrn.models._copies import only_layer

if TYPE_CHECKING:
    from keras_gdrn.tuning._hypermodel import GaussDerResNetHyperModel

_DRAWN = 3
_STEP = 3  # a training step takes about three forward passes
_SIDE = 1024


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


def search_cost(
    hypermodel: "GaussDerResNetHyperModel",
    images: int,
    trials: int,
    epochs: int | None = None,
) -> str:
    """An estimate of what it takes to train the networks of a search, in a sentence.

    Three networks are drawn from the space and counted (see `multiply_adds`). The time
    is what this machine would need for their matrix products alone, at the speed of
    large ones: a search takes longer, often several times as long.

    Args:
        hypermodel: The hypermodel.
        images: Number of training images.
        trials: Number of trials.
        epochs: Epochs of a trial; by default those of its recipe.

    Returns:
        The sentence: trials, epochs, images, multiply-adds and time.

    Example:

    >>> print(search_cost(hypermodel, len(images), trials=20))
    """
    epochs = epochs or hypermodel.base_recipe.epochs
    drawn = sorted(_per_trial(hypermodel, epochs, seed) for seed in range(_DRAWN))
    lowest, highest = (count / epochs / 1e6 for count in (drawn[0], drawn[-1]))
    total = _STEP * images * trials * sum(drawn) / _DRAWN
    hours = total / _speed() / 3600
    least = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"
    return (
        f"{trials} trials of {epochs} epochs over {images:,} images: {lowest:,.0f} to "
        f"{highest:,.0f} million multiply-adds per image ({_DRAWN} networks drawn from "
        f"the space), {total:.1e} in all. Matrix products alone take {least} on this "
        "machine; expect several times as much."
    )


def _per_trial(hypermodel: "GaussDerResNetHyperModel", epochs: int, seed: int) -> int:
    """Multiply-adds of the forward passes of an image, in all epochs of a trial."""
    hp = keras_tuner.HyperParameters()
    hypermodel.space.architecture(hp)
    for parameter in hp.space:
        hp.values[parameter.name] = parameter.random_sample(seed)
    model = hypermodel.build(hp)
    single = min(hypermodel.single_scale_epochs, epochs)
    one = multiply_adds(with_sigma0(model, [1.0])) if single else 0
    return single * one + (epochs - single) * multiply_adds(model)


def _speed() -> float:
    """Multiply-adds per second of a large matrix product."""
    matrix = keras.random.uniform((_SIDE, _SIDE), seed=0)
    seconds = []
    for _ in range(3):  # the first one may compile
        begun = time.perf_counter()
        keras.ops.convert_to_numpy(keras.ops.matmul(matrix, matrix))
        seconds.append(time.perf_counter() - begun)
    return _SIDE**3 / min(seconds)


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
    back. They fall as σ grows, since the rank does.

    Args:
        layer: Layer that is built.
        axes: Factors of the layer along each axis at this scale.
    """
    channels, filters = layer.kernel.shape[-2:]
    mixed = channels if layer.separable else filters
    grid, total = [axis.size for axis in axes], 0
    for number, axis in enumerate(axes):
        if axis.analysis is not None:
            total += _along(grid, number, axis.analysis) * channels
    for number in reversed(range(1, len(axes))):
        responses = len({alpha[number:] for alpha in layer.indices})
        total += _along(grid, number, axes[number].jets[0]) * channels * responses
    mix = math.prod(grid) * len(layer.indices) * channels
    total += mix if layer.separable else mix * filters
    responses = len({alpha[0] for alpha in layer.indices})
    total += _along(grid, 0, axes[0].jets[0]) * mixed * responses
    for number, axis in reversed(list(enumerate(axes))):
        if axis.synthesis is not None:
            total += _along(grid, number, axis.synthesis) * mixed
    return total + (math.prod(grid) * channels * filters if layer.separable else 0)


def _along(grid: list[int], axis: int, matrix) -> int:
    """A product along an axis of a grid, which then has as many pixels as it gives."""
    lines = math.prod(grid) // grid[axis]
    grid[axis] = matrix.shape[0]
    return lines * matrix.size  # of a sparse one, its entries
