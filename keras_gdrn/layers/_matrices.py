"""Matrices along an axis: constants, or tensors computed in the graph.

If sizes and scales are numbers, they are those of `kernels`. For an image size known
only in the graph, or a learned scale, they are tensors in single precision.
"""

import math
from typing import Any

import numpy as np
from keras import ops

from keras_gdrn.kernels import _axis, _spline
from keras_gdrn.layers._backends import single_or_double

# Values of a kernel per pixel, with linear interpolation between them.
_FINENESS = 256


def smoothing(inputs, outputs, sigma, dtype, boundary="symmetric", start=0.0):
    """As `kernels._axis.smoothing`, also for a learned σ, which began as `start`."""
    if isinstance(inputs, int) and isinstance(sigma, float):
        return _axis.smoothing(inputs, outputs, sigma, boundary)
    # Enough zeros beyond the edges that the mirror image has no influence.
    margin = inputs + math.ceil(40 * start) if boundary == "zero" else 0
    return _smoothing_by_cosines(inputs, outputs, sigma, margin, dtype)


def sampling(pixels, points: int, step: float, sigma, boundary, start=0.0) -> Any:
    """As `kernels._spline.sampling`; a learned σ may grow to 4 times `start`."""
    if not isinstance(sigma, float):
        if not isinstance(pixels, int):
            raise ValueError(
                "A first layer with `trainable_sigma=True` needs images of a known "
                "size. Received: images of an unknown size"
            )
        spacing, count = _spline.nodes(points, step, start, growth=4)
        dtype, nodal = single_or_double(sigma.dtype), sigma / spacing
        smooth = resampling(count, points, step / spacing, nodal, "zero", dtype)
        spline = _spline.sampling(pixels, count, spacing, 0.0, boundary)
        return ops.matmul(smooth, ops.convert_to_tensor(spline, smooth.dtype))
    if isinstance(pixels, int) and isinstance(points, int):
        return _spline.sampling(pixels, points, step, sigma, boundary)
    return _spline_values(_centered(points) * step, pixels, sigma, boundary)


def resampling(size, points, step: float, sigma, boundary, dtype) -> Any:
    """As `kernels._spline.resampling`, also for a learned σ."""
    if isinstance(size, int) and isinstance(sigma, float):
        return _spline.resampling(size, points, step, sigma, boundary)
    sigma, positions = ops.cast(sigma, dtype), _centered(points, dtype) * step

    def response(distances):
        return _spline.gaussian(distances, sigma, ops)

    return _with_mirror_images(response, positions, size, boundary)


def _smoothing_by_cosines(inputs, outputs, sigma, margin, dtype):
    """By the discrete cosine transform, which makes mirrored smoothing diagonal.

    `T = A diag(exp(-σ² (1 - cos θ))) Bᵀ` at `θ_k = π k / n`.
    """
    sigma, size = ops.cast(sigma, dtype), inputs + 2 * margin
    k = ops.arange(size)
    theta = math.pi * ops.cast(k, dtype) / ops.cast(size, dtype)
    weight = ops.cast(ops.where(k > 0, 2, 1), dtype) / ops.cast(size, dtype)
    weight = weight * ops.exp(-ops.square(sigma) * (1 - ops.cos(theta)))
    first = margin - (outputs - inputs) // 2
    left = _cosines(ops.arange(outputs) + first, k, size, dtype)
    right = _cosines(ops.arange(inputs) + margin, k, size, dtype)
    return ops.matmul(left * weight, ops.transpose(right))


def _cosines(place, k, size, dtype: str):
    """`cos(π k (n + 1/2) / size)`."""
    # Reduced before the division: large products would lose the phase's low digits.
    turns = (k * (2 * place[:, None] + 1)) % (4 * size)
    return ops.cos(ops.cast(turns, dtype) * (math.pi / 2) / ops.cast(size, dtype))


def _spline_values(positions, size, sigma: float, boundary: str):
    """The smoothed spline through `size` centered values, at positions.

    By a table of the impulse response.
    """
    table = _spline.spline_response(sigma, _FINENESS)
    reach = (len(table) - 2) // 2
    table = ops.convert_to_tensor(table, "float32")

    def response(distances):
        place = ops.clip(distances * _FINENESS + reach, 0, 2 * reach)
        low = ops.floor(place)
        weight, low = place - low, ops.cast(low, "int32")
        return (1 - weight) * ops.take(table, low) + weight * ops.take(table, low + 1)

    return _with_mirror_images(response, positions, size, boundary)


def _with_mirror_images(response, positions, size, boundary: str):
    """Responses at positions to `size` centered values, and to their mirror images."""
    place = _centered(size, positions.dtype)
    if boundary == "zero":
        return response(positions[:, None] - place)
    period = ops.cast(2 * size, positions.dtype)
    # Copies are a period apart, mirror images half a period from them.
    images = [(1.0, k) for k in range(-2, 3)] + [(-1.0, k + 0.5) for k in range(-3, 3)]
    return sum(
        response(positions[:, None] - (sign * place + k * period)) for sign, k in images
    )


def _centered(count, dtype="float32"):
    if isinstance(count, int):
        return ops.convert_to_tensor(np.arange(count) - (count - 1) / 2, dtype)
    return ops.cast(ops.arange(count), dtype) - ops.cast(count - 1, dtype) / 2
