"""How a Gaussian derivative layer is evaluated, as functions over `keras.ops`.

    y = (U ⊗ … ⊗ U) Σ_α C_α (D_α1 ⊗ … ⊗ D_αD) (A ⊗ … ⊗ A) x

analyse, take the jet on few coefficients, mix the channels there, synthesise. The
factors `A`, `D_a`, `U` of each axis come from `kernels.axis_factors`; where they bring
no reduction `A` and `U` are the identity and `D_a` is the operator `K_a` itself.
"""

import math

import numpy as np
from keras import ops

from keras_gdrn.kernels import AxisFactors


def apply_along(operator, x, axis: int):
    """Multiplies by `operator` `(out, in)` along `axis` of `x` `(…, in, …)`."""
    shape = ops.shape(x)
    size_in = shape[axis]
    columns = math.prod(shape[axis + 1 :])
    operator = ops.convert_to_tensor(operator, dtype=x.dtype)
    x = ops.reshape(x, (-1, size_in, columns))
    y = ops.matmul(operator, x)
    return ops.reshape(y, (*shape[:axis], ops.shape(operator)[0], *shape[axis + 1 :]))


def jet(x, operators, indices) -> dict:
    """Responses `(D_α1 ⊗ … ⊗ D_αD) x` for every multi-index α of `indices`.

    `x` is `(batch, *spatial, channels)` and `operators[i][a]` the matrix of order `a`
    along spatial axis `i`. Partial responses are shared between the multi-indices; the
    last axis comes first, because its products have the fewest columns and are the
    least efficient, and fewest partial multi-indices exist then.
    """
    responses = {(): x}
    for axis in reversed(range(len(operators))):
        suffixes = dict.fromkeys(alpha[axis:] for alpha in indices)
        responses = {
            suffix: apply_along(
                operators[axis][suffix[0]], responses[suffix[1:]], axis + 1
            )
            for suffix in suffixes
        }
    return responses


def mixed_jet(x, kernel, operators, indices):
    """`Σ_α C_α (D_α1 ⊗ … ⊗ D_αD) x`, differentiable in all of its tensors.

    `kernel[i]` is `C_α` of the i-th multi-index: `(channels, filters)`, or
    `(channels,)` for one filter per channel (the depthwise stage).
    """
    responses = jet(x, operators, indices)
    return sum(_mix(responses[a], kernel[i]) for i, a in enumerate(indices))


def mixed_jet_of_constants(x, kernel, operators, indices):
    """`mixed_jet` for operators that are not trained, with a lean gradient.

    Since `⟨D x, ȳ⟩ = ⟨x, Dᵀ ȳ⟩`, the jet of the incoming gradient under the transposed
    operators gives both gradients. Nothing but `x` and `kernel` is kept for it: the
    memory that automatic differentiation needs for the jet of `x` is saved at no cost.
    """
    transposed = [_transpose(per_order) for per_order in operators]

    @ops.custom_gradient
    def mix(x, kernel):
        def gradient(*args, upstream=None):
            responses = jet(args[0] if upstream is None else upstream, transposed, indices)
            x_bar, kernel_bar = 0, []
            for i, alpha in enumerate(indices):
                x_bar = x_bar + _mix(responses[alpha], ops.transpose(kernel[i]))
                kernel_bar.append(_correlate(x, responses[alpha], len(kernel.shape)))
            return x_bar, ops.stack(kernel_bar)

        return mixed_jet(x, kernel, operators, indices), gradient

    return mix(x, kernel)


def analyse(x, factors: list[AxisFactors]):
    """`(A ⊗ … ⊗ A) x`: from pixels to coefficients, the first axis first."""
    for axis, factor in enumerate(factors, start=1):
        if factor.analysis is not None:
            x = apply_along(factor.analysis, x, axis)
    return x


def synthesise(x, factors: list[AxisFactors]):
    """`(U ⊗ … ⊗ U) x`: from coefficients to pixels, the first axis last."""
    for axis, factor in reversed(list(enumerate(factors, start=1))):
        if factor.synthesis is not None:
            x = apply_along(factor.synthesis, x, axis)
    return x


def spectral_operators(size, sigma, order: int, boundary: str, reach: int, dtype):
    """The operators `K_0, …, K_order` of one axis, made inside the graph.

    Sums the closed form of the Fourier transform over `2 half` sampled frequencies,
    `k_a(n) = 1/(2 half) Σ_θ K̂_a(θ) exp(-i θ n)`; exact to rounding, differentiable in
    `sigma`, and usable where the axis length is known only when the graph runs. The
    sum is the kernel repeated with period `2 half`: of period `2 size`, that *is* the
    half-sample mirror; for the zero boundary, copies must be out of `reach`.

    Args:
        size: Length of the axis, an integer or a scalar integer tensor.
        sigma: Scale in pixels, a number or a scalar tensor.
        reach: Radius in pixels where the kernel has vanished (zero boundary only).

    Returns:
        Tensor `(order + 1, size, size)`.
    """
    half = size if boundary == "symmetric" else (size + reach + 1) // 2
    frequency = ops.arange(half + 1)
    # Reduced before the division: large products would lose the phase's low digits.
    phase = (frequency[:, None] * ops.arange(size + 1)) % (2 * half)
    unit = math.pi / ops.cast(half, dtype)
    phase, theta = ops.cast(phase, dtype) * unit, ops.cast(frequency, dtype) * unit
    curvature = 4 * ops.square(ops.sin(theta / 2))
    inner = (frequency > 0) & (frequency < half)
    weight = ops.where(inner, 2.0, 1.0) / (2 * ops.cast(half, dtype))
    spectrum = ops.cast(weight, dtype) * ops.exp(-0.5 * sigma**2 * curvature)
    pixel = ops.arange(size)
    offset = pixel[None, :] - pixel[:, None]
    mirrored = pixel[None, :] + pixel[:, None] + 1
    operators = []
    for a in range(order + 1):
        odd = a % 2
        wave, difference = (ops.sin(phase), ops.sin(theta)) if odd else (ops.cos(phase), 1)
        difference = sigma**a * difference * (-curvature) ** (a // 2)
        kernel = ops.matmul((spectrum * difference)[None], wave)[0]
        operator = _gather(kernel, offset, odd)
        if boundary == "symmetric":
            # -mirrored and 2 size - mirrored are one offset; take the one in range.
            near = ops.where(mirrored > size, 2 * size - mirrored, -mirrored)
            operator = operator + _gather(kernel, near, odd)
        operators.append(operator)
    return ops.stack(operators)


def _gather(kernel, offset, odd: int):
    values = ops.take(kernel, ops.abs(offset))
    return values * ops.cast(ops.sign(offset), values.dtype) if odd else values


def _mix(x, weight):
    return x * weight if len(weight.shape) == 1 else pointwise(x, weight)


def pointwise(x, weight):
    """The same matrix `(channels, filters)` at every position."""
    shape = ops.shape(x)
    y = ops.matmul(ops.reshape(x, (-1, shape[-1])), weight)
    return ops.reshape(y, (*shape[:-1], weight.shape[-1]))


def _correlate(x, y, kernel_rank: int):
    """Gradient of `_mix` for its weight: sums over batch and space."""
    x = ops.reshape(x, (-1, x.shape[-1]))
    y = ops.reshape(y, (-1, y.shape[-1]))
    if kernel_rank == 2:
        return ops.sum(x * y, axis=0)
    return ops.matmul(ops.transpose(x), y)


def _transpose(operators):
    if isinstance(operators, np.ndarray):
        return np.ascontiguousarray(operators.transpose(0, 2, 1))
    return ops.transpose(operators, (0, 2, 1))
