"""How a Gaussian derivative layer is evaluated, as functions over `keras.ops`.

    y = (U ⊗ … ⊗ U) Σ_α C_α (D_α1 ⊗ … ⊗ D_αD) (A ⊗ … ⊗ A) x

analyse, take the jet on few coefficients, mix the channels there, synthesise. The
factors `A`, `D_a`, `U` of each axis come from `kernels.axis_factors`; where they bring
no reduction `A` and `U` are the identity and `D_a` is the operator `K_a` itself.

Every step is a plain matrix product, which all backends and devices run well. Tracing
a network costs by the operation, so there are as few as can be: between the products an
array stays in whatever folding of its axes it came in, and scales that take the same
steps take them together.
"""

import itertools
import math
from typing import Any

import numpy as np
from keras import ops

from keras_gdrn.kernels import AxisFactors
from keras_gdrn.layers._order import after

# The tails of a Gaussian end in numbers that float32 cannot hold in full. Where these
# are not taken for zero, as in onnxruntime, products with them take some times as long.
_VANISHED = 1e-20


def filtered(
    x, kernel, factors: list[list[AxisFactors]], indices, constant=True
) -> Any:
    """`Σ_α C_α (K_α1 ⊗ … ⊗ K_αD) x`, each equal part of the batch at its own scale.

    Args:
        x: `(parts * batch, *spatial, channels)`.
        kernel: `C_α` for each of `indices`: `(jet, channels, filters)`, or
            `(jet, channels)` for one filter per channel.
        factors: For each part of the batch, the factors of each spatial axis.
        indices: The multi-indices α.
        constant: Whether the factors are constants. Then the gradient needs nothing
            but the coefficients and the kernel, and no jet is kept for it.

    Returns:
        `(parts * batch, *spatial, filters)`.
    """
    if not constant:
        return _forward(x, kernel, factors, indices)[0]

    @ops.custom_gradient
    def filtered_by_constants(x, kernel):
        y, coefficients = _forward(x, kernel, factors, indices)

        def gradient(*args, upstream=None):
            y_bar = args[0] if upstream is None else upstream
            return _backward(y_bar, coefficients, kernel, factors, indices)

        return y, gradient

    return filtered_by_constants(x, kernel)


def pointwise(x, weight):
    """The matrix `weight` `(channels, filters)` at every position of `x`."""
    shape = ops.shape(x)
    y = ops.matmul(ops.reshape(x, (-1, shape[-1])), weight)
    return ops.reshape(y, (-1, *shape[1:-1], weight.shape[-1]))


def _forward(x, kernel, factors, indices):
    weights = ops.unstack(kernel)
    groups = _grouped(factors)
    y, coefficients = [], []
    for part, group in zip(_split(x, groups), groups, strict=True):
        axes = _tensors(group, x.dtype)
        part = after(part, y[-1] if y else None)
        coefficients.append(_analysed(part, axes))
        responses = _jet(coefficients[-1], axes, indices, channels=x.shape[-1])
        y.append(_synthesised(_mixed(responses, weights), axes))
    return _joined(y), coefficients


def _backward(y_bar, coefficients, kernel, factors, indices):
    """Gradients of `_forward` with respect to `x` and `kernel`.

    Since `⟨D x, ȳ⟩ = ⟨x, Dᵀ ȳ⟩`, the jet of `ȳ` under the transposed operators serves
    both: automatic differentiation would have to keep, or compute again, that of `x`.
    """
    adjoint = ops.transpose(kernel, (0, 2, 1)) if len(kernel.shape) == 3 else kernel
    weights = ops.unstack(adjoint)
    groups = _grouped(factors)
    parts = _split(y_bar, groups)
    x_bar, kernel_bar = [], []
    for part, x, group in zip(parts, coefficients, groups, strict=True):
        axes = _tensors(group, y_bar.dtype, adjoint=True)
        part = after(part, x_bar[-1] if x_bar else None)
        responses = _jet(_analysed(part, axes), axes, indices, y_bar.shape[-1])
        x_bar.append(_synthesised(_mixed(responses, weights), axes))
        kernel_bar.append(_correlated(x, responses, kernel))
    return _joined(x_bar), sum(kernel_bar)


def _grouped(factors: list[list[AxisFactors]]) -> list[list[list[AxisFactors]]]:
    """Neighboring scales form a group that takes its steps together.

    One product with the stack of their operators serves all, which leaves fewer
    operations to trace and to launch. Arrays of a group have the same sizes: those of
    scales that are not reduced along any axis, or, where all axes are reduced by half
    and more, the largest, which costs little there.
    """
    groups = []
    for alike, run in itertools.groupby(factors, key=_alike):
        scales = list(run)
        groups += [scales] if alike else [[axes] for axes in scales]
    return groups


def _alike(axes: list[AxisFactors]) -> str | None:
    if all(axis.analysis is None for axis in axes):
        return "not reduced"
    return "halved" if all(map(_is_halved, axes)) else None


def _is_halved(axis: AxisFactors) -> bool:
    if axis.analysis is None:
        return False
    rank, size = axis.analysis.shape
    return 2 * rank <= size


def _folded(x, scales: int, sizes: list, number: int, channels: int):
    """Puts axis `number` of `x`, any folding of `(scales, batch, *sizes, channels)`,
    last but one.

    Returns:
        `(scales, everything in front, size, everything behind)`.
    """
    behind = math.prod(sizes[number:]) * channels
    return ops.reshape(x, (scales, -1, sizes[number - 1], behind))


def _analysed(x, axes: list[AxisFactors]):
    """`(A ⊗ … ⊗ A) x`; the first axis first, whose product is the most efficient."""
    sizes, channels = [_size(axis) for axis in axes], x.shape[-1]
    for number, axis in enumerate(axes, start=1):
        if axis.analysis is not None:
            folded = _folded(x, _scales(axes), sizes, number, channels)
            x = ops.matmul(axis.analysis, folded)
            sizes[number - 1] = _rank(axis)
    return x


def _jet(x, axes: list[AxisFactors], indices, channels: int) -> list:
    """`(D_α1 ⊗ … ⊗ D_αD) x` for each multi-index α, as `(positions, channels)`.

    Multi-indices that end alike share their products. The last axis comes first: its
    products are the least efficient, and there are fewest of them then.
    """
    sizes = [_rank(axis) for axis in axes]
    responses = {(): x}
    for number in range(len(axes), 0, -1):
        jets = axes[number - 1].jets
        folded = {
            suffix: _folded(response, _scales(axes), sizes, number, channels)
            for suffix, response in responses.items()
        }
        suffixes = dict.fromkeys(alpha[number - 1 :] for alpha in indices)
        responses = {
            suffix: ops.matmul(jets[suffix[0]], folded[suffix[1:]])
            for suffix in suffixes
        }
    return [ops.reshape(responses[alpha], (-1, channels)) for alpha in indices]


def _mixed(responses, weights):
    """`Σ_α C_α r_α` at every position."""
    mix = ops.multiply if len(weights[0].shape) == 1 else ops.matmul
    return sum(mix(r, weight) for r, weight in zip(responses, weights, strict=True))


def _correlated(x, responses, kernel):
    """Gradient of `_mixed` for its weights: `Σ x r_αᵀ` over all positions."""
    x = ops.reshape(x, (-1, kernel.shape[1]))
    if len(kernel.shape) == 2:
        return ops.stack([ops.sum(x * r, axis=0) for r in responses])
    x = ops.transpose(x)
    return ops.stack([ops.matmul(x, r) for r in responses])


def _synthesised(y, axes: list[AxisFactors]):
    """`(U ⊗ … ⊗ U) y` for `y` of shape `(positions, channels)`; the last axis first."""
    sizes, channels = [_rank(axis) for axis in axes], y.shape[-1]
    for number in range(len(axes), 0, -1):
        axis = axes[number - 1]
        if axis.synthesis is not None:
            folded = _folded(y, _scales(axes), sizes, number, channels)
            y = ops.matmul(axis.synthesis, folded)
            sizes[number - 1] = _size(axis)
    return ops.reshape(y, (-1, *sizes, channels))


def _tensors(group: list[list[AxisFactors]], dtype, adjoint=False) -> list[AxisFactors]:
    """The factors of each axis, or those of the adjoint, as tensors for a group.

    Every matrix is `(scales, 1, rows, columns)`. Equal axes share theirs.
    """

    def tensor(*matrices):
        if matrices[0] is None:
            return None
        if isinstance(matrices[0], np.ndarray):
            stack, swapaxes = _padded(matrices)[:, None], np.swapaxes
        else:
            stack, swapaxes = ops.stack(matrices)[:, None], ops.swapaxes
        return ops.convert_to_tensor(
            swapaxes(stack, -1, -2) if adjoint else stack, dtype
        )

    def tensors(scales):
        enter = tensor(*(axis.analysis for axis in scales))
        leave = tensor(*(axis.synthesis for axis in scales))
        jets = [
            tensor(*order)
            for order in zip(*(axis.jets for axis in scales), strict=True)
        ]
        return AxisFactors(*((leave, jets, enter) if adjoint else (enter, jets, leave)))

    distinct = {tuple(map(id, scales)): scales for scales in zip(*group, strict=True)}
    converted = {key: tensors(scales) for key, scales in distinct.items()}
    return [converted[tuple(map(id, scales))] for scales in zip(*group, strict=True)]


def _padded(matrices: tuple[np.ndarray, ...]) -> np.ndarray:
    """The stack of `matrices`, with rows and columns of zeros up to the largest."""
    rows, columns = np.max([matrix.shape for matrix in matrices], axis=0)
    stack = np.zeros((len(matrices), rows, columns))
    for padded, matrix in zip(stack, matrices, strict=True):
        padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.where(np.abs(stack) < _VANISHED, 0.0, stack)


def _scales(axes: list[AxisFactors]) -> int:
    return axes[0].jets[0].shape[0]


def _rank(axis: AxisFactors):
    return ops.shape(axis.jets[0])[-1]


def _size(axis: AxisFactors):
    return _rank(axis) if axis.synthesis is None else axis.synthesis.shape[-2]


def _split(x, groups: list) -> list:
    """The part of the batch that belongs to each group."""
    if len(groups) == 1:
        return [x]
    *ends, scales = itertools.accumulate(len(group) for group in groups)
    x = ops.reshape(x, (scales, -1, *ops.shape(x)[1:]))
    return ops.split(x, ends, axis=0)


def _joined(parts: list):
    return ops.concatenate(parts, axis=0) if len(parts) > 1 else parts[0]


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
