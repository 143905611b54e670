"""Mirror and axis symmetries of a layer, and the scale-space properties of a kernel.

A `kernel(sigma, radius)` has the length `2 radius + 1`.
"""

import numpy as np

from tests.theory.assertions import assert_close, difference
from tests.theory.networks import array, with_jet


def assert_mirror_covariant(layer, images, *, axis, tolerance):
    """Mirroring an axis mirrors the response, with the sign of the odd orders.

    `∂_α` of `f(-x)` is `(-1)^α_axis` times the mirrored `∂_α f`: the layer with the
    weights `(-1)^α_axis C_α` answers the mirrored image by the mirrored response.
    """
    signs = [(-1) ** alpha[axis] for alpha in layer.indices]
    mirrored = with_jet(layer, lambda alpha, c: c * signs[layer.indices.index(alpha)])
    actual = array(mirrored(np.flip(images, axis + 1).copy()))
    error = difference(actual, np.flip(array(layer(images)), axis + 1))
    assert_close(f"mirror covariant (axis {axis})", error, tolerance)


def assert_transposition_covariant(layer, images, *, axes, tolerance):
    """Reordering the image's axes reorders the entries of each multi-index alike."""
    kernel = dict(zip(layer.indices, layer.get_weights()[0], strict=True))
    # `transpose` puts axis axes[i] at place i; undo that to find where α came from.
    source = np.argsort(axes)

    def moved(alpha, _):
        return kernel[tuple(alpha[i] for i in source)]

    order = (0, *(i + 1 for i in axes), images.ndim - 1)
    transposed = np.ascontiguousarray(images.transpose(order))
    actual = array(with_jet(layer, moved)(transposed))
    error = difference(actual, array(layer(images)).transpose(order))
    assert_close(f"transposition covariant (axes {axes})", error, tolerance)


def assert_semigroup(kernel, first, second, *, tolerance, radius=60):
    """`T(·; σ_1) * T(·; σ_2) = T(·; sqrt(σ_1² + σ_2²))`, a cascade of smoothings.

    Source: Lindeberg 1990; it holds for the discrete kernel, not for sampled Gaussians.
    """
    cascade = np.convolve(kernel(first, radius), kernel(second, radius), mode="same")
    error = difference(cascade, kernel(np.hypot(first, second), radius))
    assert_close("a semi-group over scales", error, tolerance)


def assert_solves_diffusion(kernel, sigma, *, tolerance, radius=60, step=1e-4):
    """`∂_s T = 1/2 δ_xx T` for the variance `s = σ²`, the semi-discrete diffusion."""
    variance = sigma**2
    later, earlier = (kernel(np.sqrt(variance + t), radius) for t in (step, -step))
    change = ((later - earlier) / (2 * step))[1:-1]
    curvature = np.convolve(kernel(sigma, radius), [1, -2, 1], mode="valid")
    error = difference(curvature / 2, change)
    assert_close("a solution of the diffusion equation", error, tolerance)


def assert_steers(make, order, image, direction, expected, *, tolerance):
    """With `C_α = u^α`, order N of the jet is the directional derivative `(u·∇)^N`.

    That is what the multinomial `m(α)` is for: `(u·∇)^N = Σ_|α|=N m(α) u^α ∂^α`. The
    coefficients of other orders are zero; the response is seen at the center only.

    Args:
        make: Function from the function `α -> C_α` to a layer of one channel.
        expected: `σ^N (u·∇)^N` of the image at the center.
    """

    def coefficient(alpha):
        return np.prod(np.power(direction, alpha)) if sum(alpha) == order else 0.0

    response = array(make(coefficient)(image[None, ..., None]))
    actual = response[0, ..., 0][tuple(n // 2 for n in image.shape)]
    assert_close("a directional derivative", abs(actual / expected - 1), tolerance)
