"""The operators of an axis from their Fourier transform, inside the graph."""

import math

from keras import ops

from keras_gdrn.kernels import spline_interpolation


def spectral_operators(
    size, sigma, order: int, mirrored, reach, dtype, grid: tuple = (1.0, 0)
) -> list:
    """The operators `K_0, …, K_order` of one axis, made inside the graph.

    Differentiable in `sigma`, and usable where the length of the axis is known only
    when the graph runs.

    Args:
        size: Length of the axis, an integer or a scalar integer tensor.
        sigma: Scales in pixels, a tensor `(scales,)`.
        mirrored: Whether the mirror image lies outside, or zeros.
        reach: Radius in pixels where all kernels have vanished.
        grid: Step of the grid that the kernels are from (see
            `kernels.gaussian_derivative`), and, where that is less than a pixel, the
            radius in pixels, a number, at which they are cut off.

    Returns:
        List of `order + 1` tensors `(scales, size, size)`.
    """
    # The sum repeats the kernel with a period of 2 half: of period 2 size, that *is*
    # the half-sample mirror; otherwise, the copies must be out of reach.
    half = _chosen(mirrored, size, (size + reach + 1) // 2)
    kernels = _spectral_kernels(half, size, sigma, order, dtype, *grid)
    pixel = ops.arange(size)
    offset = pixel[None, :] - pixel[:, None]
    operators = [_gathered(kernel, offset, a % 2) for a, kernel in enumerate(kernels)]
    if mirrored is False:
        return operators
    image = pixel[None, :] + pixel[:, None] + 1
    # -image and 2 size - image are the same offset; take the one in range.
    near = ops.where(image > size, 2 * size - image, -image)
    share = _chosen(mirrored, 1.0, 0.0)
    return [
        operator + ops.cast(share, dtype) * _gathered(kernel, near, a % 2)
        for a, (operator, kernel) in enumerate(zip(operators, kernels, strict=True))
    ]


def _chosen(condition, yes, no):
    if isinstance(condition, bool):
        return yes if condition else no
    return ops.where(condition, yes, no)


def _spectral_kernels(
    half, size, sigma, order: int, dtype, step: float = 1.0, radius: int = 0
) -> list:
    """`k_a(n) = 1/(2 half) Σ_θ K̂_a(θ) exp(-i θ n)` for n = 0, …, size, at each scale.

    The Fourier transform, summed over `2 half` sampled frequencies, of which the
    negative ones mirror the others.
    """
    frequency = ops.arange(half + 1)
    waves = _waves(half, size, dtype)
    inner = (frequency > 0) & (frequency < half)
    weight = ops.cast(ops.where(inner, 2.0, 1.0), dtype) / (2 * ops.cast(half, dtype))
    if step < 1:
        transforms = _between_pixels(half, sigma, order, dtype, step, radius)
    else:
        theta = ops.cast(frequency, dtype) * (math.pi / ops.cast(half, dtype))
        transforms = _closed_form(theta, sigma[:, None], order)
    return [
        ops.matmul(transform * weight, waves[a % 2])
        for a, transform in enumerate(transforms)
    ]


def _waves(half, size, dtype) -> tuple:
    """`cos θ n` and `sin θ n` at the sampled frequencies, for n = 0, …, size."""
    # Reduced before the division: large products would lose the phase's low digits.
    phase = (ops.arange(half + 1)[:, None] * ops.arange(size + 1)) % (2 * half)
    phase = ops.cast(phase, dtype) * (math.pi / ops.cast(half, dtype))
    return ops.cos(phase), ops.sin(phase)


def _closed_form(theta, sigma, order: int) -> list:
    """`K̂_a(θ)` of the discrete kernels (`kernels.fourier_response`), without `i`."""
    curvature = 4 * ops.square(ops.sin(theta / 2))
    gaussian = ops.exp(-0.5 * sigma**2 * curvature)
    return [
        sigma**a
        * (ops.sin(theta) if a % 2 else 1)
        * (-curvature) ** (a // 2)
        * gaussian
        for a in range(order + 1)
    ]


def _between_pixels(half, sigma, order: int, dtype, step: float, radius: int) -> list:
    """`K̂_a(θ)` of kernels between the pixels (`kernels.gaussian_derivative`)."""
    points = math.ceil(radius / step)
    fine = _spectral_kernels(points + 1, points, sigma / step, order, dtype)
    weights = spline_interpolation(radius, points, step)[radius:]
    ahead, behind = weights[:, points:], weights[:, points::-1].copy()
    behind[:, 0] = 0  # the point in the middle counts once
    waves = _waves(half, radius, dtype)
    twice = ops.where(ops.arange(radius + 1) > 0, 2.0, 1.0)
    transforms = []
    for a, kernel in enumerate(fine):
        interpolation = ops.convert_to_tensor(ahead + (-1) ** a * behind, dtype)
        on_pixels = ops.matmul(kernel, ops.transpose(interpolation))
        on_pixels = on_pixels * ops.cast(twice, dtype)
        transforms.append(ops.matmul(on_pixels, ops.transpose(waves[a % 2])))
    return transforms


def _gathered(kernel, offset, odd: int):
    """`k(offset)` of an even or odd kernel that is given for `offset >= 0`."""
    values = ops.take(kernel, ops.abs(offset), axis=1)
    return values * ops.cast(ops.sign(offset), values.dtype) if odd else values
