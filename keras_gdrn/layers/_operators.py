"""The operators of a layer at each scale: constants, or made inside the graph."""

import math

from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers._jets import Factors
from keras_gdrn.layers._windows import Windows


def constant_factors(
    sigma: float,
    entering: Windows,
    leaving: Windows,
    order: int,
    boundary: str,
    epsilon: float,
) -> Factors:
    """At each initial scale, the low-rank factors of each axis."""
    windows = zip(entering.sigma0, entering.of_scales, leaving.of_scales, strict=True)
    return [
        [
            kernels.axis_factors(
                size, scale * sigma, order, boundary, epsilon, outputs, asked.influence
            )
            for size, outputs in zip(given.sizes, asked.sizes, strict=True)
        ]
        for scale, given, asked in windows
    ]


def factors_in_graph(
    sigma: float,
    entering: Windows,
    leaving: Windows,
    order: int,
    boundary: str,
    dtype: str,
    log_sigma=None,
) -> Factors:
    """At each initial scale, the operators of each axis, made inside the graph.

    Usable where sizes are known only when the graph runs, and differentiable in σ.

    Args:
        log_sigma: Learned logarithm of σ, or `None` if it is `sigma`.
    """
    # Beyond this radius all kernels have vanished, and however far σ is trained, they
    # need not outgrow the image.
    reach = kernels.support_radius(max(entering.sigma0) * sigma)
    relative = sigma if log_sigma is None else ops.exp(ops.cast(log_sigma, dtype))
    scales = ops.convert_to_tensor(entering.sigma0, dtype) * relative

    def operators(size, outputs, scales):
        radius = reach if log_sigma is None else reach + 10 * size
        margin = (size - outputs) // 2
        orders = spectral_operators(size, scales, order, boundary, radius, dtype)
        return [operator[:, margin : margin + outputs] for operator in orders]

    # Whole maps have one size: all scales at once, as the operations are most of what
    # tracing and exporting a network costs then.
    number = len(entering.sigma0)
    step = number if entering.extent is None else 1
    factors = []
    for first in range(0, number, step):
        sizes = zip(
            entering.of_scales[first].sizes, leaving.of_scales[first].sizes, strict=True
        )
        axes = [operators(*pair, scales[first : first + step]) for pair in sizes]
        factors += [
            [kernels.AxisFactors(None, [jet[i] for jet in jets], None) for jets in axes]
            for i in range(step)
        ]
    return factors


def spectral_operators(size, sigma, order: int, boundary: str, reach: int, dtype):
    """The operators `K_0, …, K_order` of one axis, made inside the graph.

    Differentiable in `sigma`, and usable where the length of the axis is known only
    when the graph runs. All scales are made at once: the operations are most of what
    tracing and exporting a network costs then.

    Args:
        size: Length of the axis, an integer or a scalar integer tensor.
        sigma: Scales in pixels, a tensor `(scales,)`.
        reach: Radius in pixels where all kernels have vanished (zero boundary only).

    Returns:
        List of `order + 1` tensors `(scales, size, size)`.
    """
    # The sum repeats the kernel with a period of 2 half: of period 2 size, that *is*
    # the half-sample mirror; for the zero boundary, the copies must be out of reach.
    half = size if boundary == "symmetric" else (size + reach + 1) // 2
    kernels = _spectral_kernels(half, size, sigma, order, dtype)
    pixel = ops.arange(size)
    offset = pixel[None, :] - pixel[:, None]
    operators = [_gathered(kernel, offset, a % 2) for a, kernel in enumerate(kernels)]
    if boundary == "zero":
        return operators
    mirrored = pixel[None, :] + pixel[:, None] + 1
    # -mirrored and 2 size - mirrored are the same offset; take the one in range.
    near = ops.where(mirrored > size, 2 * size - mirrored, -mirrored)
    return [
        operator + _gathered(kernel, near, a % 2)
        for a, (operator, kernel) in enumerate(zip(operators, kernels, strict=True))
    ]


def _spectral_kernels(half, size, sigma, order: int, dtype) -> list:
    """`k_a(n) = 1/(2 half) Σ_θ K̂_a(θ) exp(-i θ n)` for n = 0, …, size, at each scale.

    The closed form of the Fourier transform (`kernels.fourier_response`), summed over
    `2 half` sampled frequencies, of which the negative ones mirror the others.
    """
    frequency = ops.arange(half + 1)
    # Reduced before the division: large products would lose the phase's low digits.
    phase = (frequency[:, None] * ops.arange(size + 1)) % (2 * half)
    unit = math.pi / ops.cast(half, dtype)
    phase, theta = ops.cast(phase, dtype) * unit, ops.cast(frequency, dtype) * unit
    curvature = 4 * ops.square(ops.sin(theta / 2))
    inner = (frequency > 0) & (frequency < half)
    weight = ops.cast(ops.where(inner, 2.0, 1.0), dtype) / (2 * ops.cast(half, dtype))
    sigma = sigma[:, None]
    spectrum = weight * ops.exp(-0.5 * sigma**2 * curvature)
    even, odd = (1, ops.cos(phase)), (ops.sin(theta), ops.sin(phase))
    kernels = []
    for a in range(order + 1):
        difference, wave = odd if a % 2 else even
        response = sigma**a * difference * (-curvature) ** (a // 2) * spectrum
        kernels.append(ops.matmul(response, wave))
    return kernels


def _gathered(kernel, offset, odd: int):
    """`k(offset)` of an even or odd kernel that is given for `offset >= 0`."""
    values = ops.take(kernel, ops.abs(offset), axis=1)
    return values * ops.cast(ops.sign(offset), values.dtype) if odd else values
