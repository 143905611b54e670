"""A Gaussian derivative convolution as functions over `keras.ops`.

    y = b + Σ_α C_α m(α) σ^|α| δ^α T(·; σ) * x

If σ is a few grid steps or pixels, `T` smooths maps as a matrix along each axis, and
the sum over α is one 3×…×3 `ops.conv`. If σ is many pixels, few coefficients describe a
smoothed map, and channels are mixed there. All this is computed in single precision at
least: in half precision, differences of rounded values would be off by up to 10 %.
"""

import operator
from functools import partial
from typing import Any

from keras import ops

from keras_gdrn._checks import check_reach
from keras_gdrn.kernels import multinomial
from keras_gdrn.kernels._axis import low_rank_factors
from keras_gdrn.kernels._jet import derivative_stencils
from keras_gdrn.layers._backends import single_or_double, unfused
from keras_gdrn.layers._grid import Grid, sampled
from keras_gdrn.layers._matrices import resampling, smoothing
from keras_gdrn.layers._products import matmul_along_axes, matmul_along_axis

# Variance of differences over a step, in squared steps: between 1/3 and 1/6.
VARIANCE = 1 / 4


def convolved_images(layer, images, grid: Grid, scales):
    """Convolves images at the points of a grid at each of its initial scales."""
    images, wider = _upcast(layer, images), grid.widened(stencil_radius(layer))
    sigma, step = layer.current_sigma, grid.step
    sigmas = presmoothing(sigma, step), presmoothing(layer.sigma, step)
    smooth = sampled(images, wider, scales, layer.boundary, *sigmas)
    return differences_combined(layer, smooth, sigma / step, VARIANCE)


def convolved_on_grid(layer, x, grid: Grid, target: Grid, boundary: str):
    """Convolves a map at the points of another grid, which may be coarser."""
    x, wider = _upcast(layer, x), target.widened(stencil_radius(layer))
    sigma, step = layer.current_sigma, target.step
    lengths = step / grid.step, presmoothing(sigma, step) / grid.step
    matrices = [
        resampling(size, points, *lengths, boundary, x.dtype)
        for size, points in zip(grid.sizes, wider.sizes, strict=True)
    ]
    smooth = matmul_along_axes(x, matrices)
    return differences_combined(layer, smooth, sigma / step, VARIANCE)


def convolved_on_pixels(layer, x, scale: float = 1.0):
    """Convolves an image or a map on the pixels, at `scale` times σ."""
    x, sizes = _upcast(layer, x), ops.shape(x)[1:-1]
    sigma, boundary = scale * layer.current_sigma, layer.boundary
    known = all(isinstance(size, int) for size in sizes)
    if known and isinstance(sigma, float):
        check_reach(sigma, sizes)
        wide = [
            low_rank_factors(size, sigma, layer.order, boundary, layer.epsilon)
            for size in sizes
        ]
        if wide[0] is not None:  # along all axes, or none
            return _by_low_rank_factors(layer, x, wide)
    beyond, start = 2 * stencil_radius(layer), scale * layer.sigma
    matrices = [
        smoothing(size, size + beyond, sigma, x.dtype, boundary, start)
        for size in sizes
    ]
    return differences_combined(layer, matmul_along_axes(x, matrices), sigma)


def presmoothing(sigma, step: float):
    """σ of the Gaussian that gives `sigma` together with differences over a step.

    A first difference blurs as much as a Gaussian of variance `step² / 3` does, a
    second one of `step² / 6`.
    """
    larger = max if isinstance(sigma, float) else ops.maximum
    return larger(sigma**2 - VARIANCE * step**2, sigma**2 / 2) ** 0.5


def _upcast(layer, x):
    return ops.cast(x, single_or_double(layer.compute_dtype))


def differences_combined(layer, x, sigma, variance=0.0):
    """`Σ_α C_α m(α) σ^|α| δ^α x` of smoothed values `x`, without their margin.

    `sigma` is in steps between the points. Along axes without a difference, `variance`
    makes up for the smoothing by one.
    """
    jet = _jet(layer, sigma, x.dtype)
    stencils = derivative_stencils(layer.indices, variance)
    stencils = ops.convert_to_tensor(stencils, x.dtype)
    kernel = ops.tensordot(stencils, jet, axes=1)
    if x.shape[0] == 0:  # a batch without images, which some versions refuse
        one = ops.pad(x, [[0, 1], *[[0, 0]] * (len(x.shape) - 1)])
        return _with_bias(layer, _conv(layer, one, kernel)[:0])
    return _with_bias(layer, _conv(layer, x, kernel))


def _by_low_rank_factors(layer, x, axes: list):
    """`Σ_α C_α m(α) K_α x`, by the `low_rank_factors` of each axis."""
    parts = {(): x}
    for axis, factors in enumerate(axes, start=1):
        parts = {
            (*alpha, order): matmul_along_axis(part, axis, factors.analysis[order])
            for alpha, part in parts.items()
            for order in range(layer.order + 1 - sum(alpha))
        }
    jet = _jet(layer, 1.0, x.dtype)
    mixed = operator.mul if layer.separable else ops.matmul
    y = sum(mixed(parts[alpha], jet[k]) for k, alpha in enumerate(layer.indices))
    for axis, factors in enumerate(axes, start=1):
        y = matmul_along_axis(y, axis, factors.synthesis)
    return _with_bias(layer, y)


def stencil_radius(layer) -> int:
    """Radius of the differences in steps, 1 up to order 2."""
    return (layer.order + 1) // 2


def _jet(layer, sigma, dtype) -> Any:
    """`C_α m(α) σ^|α|`."""
    jet = layer.depthwise_kernel if layer.separable else layer.kernel
    jet = ops.cast(jet, dtype)
    counts, orders = ([f(a) for a in layer.indices] for f in (multinomial, sum))
    tensor = partial(ops.convert_to_tensor, dtype=dtype)
    factors = tensor(counts) * ops.power(tensor(sigma), tensor(orders))
    return jet * ops.reshape(factors, (-1,) + (1,) * (len(jet.shape) - 1))


def _with_bias(layer, y):
    """In the layer's dtype, with biases and the second stage of a separable layer."""
    if layer.separable and layer.depthwise_bias is not None:
        y = y + ops.cast(layer.depthwise_bias, y.dtype)
    y = ops.cast(y, layer.compute_dtype)
    if layer.separable:
        y = ops.matmul(y, ops.cast(layer.kernel, y.dtype))
    return unfused(y if layer.bias is None else y + ops.cast(layer.bias, y.dtype))


def with_activity_loss(layer, maps: list) -> list:
    """Adds the activity loss, as `Layer.__call__` would, and returns the maps."""
    if layer.activity_regularizer is not None:
        loss: Any = sum(layer.activity_regularizer(x) for x in maps)
        count = sum(ops.shape(x)[0] for x in maps)
        layer.add_loss(ops.divide_no_nan(loss, ops.cast(count, loss.dtype)))
    return maps


def _conv(layer, x, kernel) -> Any:
    if layer.separable:
        kernel = ops.expand_dims(kernel, -1)
        if len(x.shape) < 5:
            return ops.depthwise_conv(x, kernel, 1, "valid", "channels_last")
        # Keras has no depthwise convolution of volumes.
        kernel = kernel * ops.eye(x.shape[-1], dtype=kernel.dtype)
    return ops.conv(x, kernel, 1, "valid", "channels_last")
