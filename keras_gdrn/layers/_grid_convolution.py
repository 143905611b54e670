"""A Gaussian derivative convolution on a grid: smoothing, then a 3×…×3 convolution.

`Σ_α C_α m(α) σ^|α| δ^α T(·; σ) * f`, where σ and δ are in steps of the grid: `T` is one
matrix along each axis, and the sum over α is one kernel of the library's convolution.
"""

import itertools
import math
from typing import Any

import numpy as np
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers._plan import Grid
from keras_gdrn.layers._precision import single_or_double


def convolved(layer, x, entering: Grid, leaving: Grid, gain=None):
    """The convolution without its bias, from one grid to another.

    Args:
        layer: `GaussDerConv`; its σ is in units of the initial scale.
        x: `(batch, *points, channels)` on the grid `entering`.
        leaving: Grid of the output: of the same step, or a multiple.
        gain: Factors `(filters,)` of the output, or `None`.
    """
    stride = round(leaving.step / entering.step)
    sigma = layer.sigma / entering.step
    beyond = 2 * kernels.stencil_radius(layer.indices)
    matrices = [
        kernels.smoothing(size, stride * (out - 1) + 1 + beyond, sigma)
        for size, out in zip(entering.sizes, leaving.sizes, strict=True)
    ]
    x = products_along(ops.cast(x, layer.compute_dtype), matrices)
    return derivatives(layer, x, sigma, stride, gain)


def sampled_convolution(layer, images, scale: float, leaving: Grid, gain=None):
    """The convolution without its bias, from the pixels to a grid.

    Args:
        layer, leaving, gain: As for `convolved`.
        images: `(batch, *spatial, channels)`.
        scale: Initial scale σ_0 in pixels.
    """
    grid = leaving.widened(kernels.stencil_radius(layer.indices))
    spatial = images.shape[1:-1]
    step, sigma = leaving.step * scale, layer.sigma * scale
    matrices = [
        kernels.sampling(pixels, size, step, sigma, layer.boundary)
        for pixels, size in zip(spatial, grid.sizes, strict=True)
    ]
    x = products_along(ops.cast(images, layer.compute_dtype), matrices)
    return derivatives(layer, x, layer.sigma / leaving.step, 1, gain)


def derivatives(layer, x, sigma: float, stride: int, gain=None):
    """The learned combination of differences of smoothed values."""
    last = layer.kernel if gain is None else layer.kernel * gain
    stencils = kernels.derivative_stencils(layer.indices, sigma)
    if not layer.separable:
        kernel = ops.cast(_combined(stencils, last), x.dtype)
        return ops.conv(x, kernel, stride, "valid", "channels_last")
    kernel = ops.cast(_combined(stencils, layer.depthwise_kernel), x.dtype)
    y = _each_channel_alone(x, kernel, stride)
    if layer.depthwise_bias is not None:
        y = y + ops.cast(layer.depthwise_bias, y.dtype)
    return ops.matmul(y, ops.cast(last, y.dtype))


def products_along(x, matrices: list[np.ndarray]):
    """Matrices `(outputs, inputs)` times the lines of `(batch, *spatial, channels)`."""
    # First the axis that shrinks most: the other products have less to do.
    by_size = sorted(
        range(len(matrices)), key=lambda k: matrices[k].shape[0] / matrices[k].shape[1]
    )
    for axis in by_size:
        x = _product_along(x, axis + 1, matrices[axis])
    return x


def _product_along(x, axis: int, matrix: np.ndarray):
    *front, size = ops.shape(x)[1 : axis + 1]
    behind = ops.shape(x)[axis + 1 :]
    lines = ops.reshape(x, (-1, size, math.prod(behind)))
    wide = ops.convert_to_tensor(matrix, single_or_double(x.dtype))
    y = ops.matmul(ops.cast(wide, x.dtype), lines)
    return ops.reshape(y, (-1, *front, matrix.shape[0], *behind))


def _combined(stencils: np.ndarray, jet):
    """`Σ_α C_α m(α) σ^|α| δ^α`, as a kernel of the library's convolution."""
    *taps, terms = stencils.shape
    jet = ops.convert_to_tensor(jet)
    rows = ops.convert_to_tensor(stencils.reshape(-1, terms), jet.dtype)
    kernel = ops.matmul(rows, ops.reshape(jet, (terms, -1)))
    return ops.reshape(kernel, (*taps, *jet.shape[1:]))


def _each_channel_alone(x, kernel, stride: int) -> Any:
    """The depthwise convolution, also in three dimensions, where Keras has none."""
    spatial = len(kernel.shape) - 1
    if spatial <= 2:
        kernel = ops.expand_dims(kernel, -1)
        return ops.depthwise_conv(x, kernel, stride, "valid", "channels_last")
    taps = kernel.shape[0]
    counts = [(size - taps) // stride + 1 for size in ops.shape(x)[1:-1]]
    terms = []
    for tap in itertools.product(range(taps), repeat=spatial):
        parts = (
            slice(at, at + stride * (count - 1) + 1, stride)
            for at, count in zip(tap, counts, strict=True)
        )
        terms.append(x[(slice(None), *parts)] * kernel[tap])
    return sum(terms)
