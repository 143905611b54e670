"""How a Gaussian derivative layer is evaluated, as functions over `keras.ops`.

    y = Σ_α C_α (K_α1 ⊗ … ⊗ K_αD) x,   K_a ≈ U D_a A along each axis

Each operator is a small matrix. `A` brings a map into few coefficients and `U` brings
them back (`kernels.axis_factors`; where that saves nothing they are the identity), so
that channels are mixed where there are few positions. Derivatives along the first axis
are taken *after* the mix, those along the other axes before it; in two dimensions

    y = (U ⊗ U) Σ_a (D_a ⊗ 1) Σ_b C_ab r_b,   r_b = (1 ⊗ D_b) (A ⊗ A) x,

so that a jet of order two needs three products along each axis, not three and five.

Maps are given positions first, `(positions, batch, channels)`, those of one scale after
those of another: each product along an axis then has long rows, and all scales mix
their channels in one product.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_gdrn.kernels import AxisFactors

# For each scale, the factors of each axis.
Factors = Sequence[Sequence[AxisFactors]]
# Responses by the orders of differentiation along some of the axes.
Jet = dict[tuple[int, ...], Any]

# Of a multi-index α: its orders along the axes before and after the channel mix.
_BEFORE, _AFTER = slice(1, None), slice(0, 1)


def filtered(x, kernel, factors: Factors, indices, constant=True) -> Any:
    """`Σ_α C_α (K_α1 ⊗ … ⊗ K_αD) x`, the positions of each scale by its own `K`.

    Args:
        x: `(positions, batch, channels)`.
        kernel: `C_α` for each of `indices`: `(jet, channels, filters)`, or
            `(jet, channels)` for one filter per channel.
        factors: For each scale, the factors of each spatial axis.
        indices: The multi-indices α.
        constant: Whether the factors are constants. Then the gradient is written out.

    Returns:
        `(positions, batch, filters)`.
    """
    if not constant:
        return _evaluated(x, kernel, factors, indices, _BEFORE, _AFTER)[0]

    @ops.custom_gradient
    def filtered_by_constants(x, kernel):
        y, _, coefficients = _evaluated(x, kernel, factors, indices, _BEFORE, _AFTER)

        def gradient(*args, upstream=None):
            y_bar = args[0] if upstream is None else upstream
            return _gradients(y_bar, coefficients, kernel, factors, indices)

        return y, gradient

    return filtered_by_constants(x, kernel)


def pointwise(x, weight):
    """The matrix `weight` `(channels, filters)` at every position of `x`."""
    shape = ops.shape(x)
    y = ops.matmul(ops.reshape(x, (-1, shape[-1])), weight)
    return ops.reshape(y, (-1, *shape[1:-1], weight.shape[-1]))


def split(x, positions: Sequence) -> list:
    """The positions of each scale, as `(positions, everything else)`."""
    x = ops.reshape(x, (sum(positions), -1))
    if len(positions) == 1:
        return [x]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # Keras finds the sizes from ends again, by ten operations, and wants numbers.
        return tf.split(x, positions)
    return ops.split(x, list(itertools.accumulate(positions))[:-1])


def joined(parts: list, axis: int = 0):
    return ops.concatenate(parts, axis) if len(parts) > 1 else parts[0]


def _evaluated(x, kernel, factors: Factors, indices, before: slice, after: slice):
    """The result, the jet that the channel mix has read, the coefficients of `x`."""
    grids = _on_grids(x, [tuple(map(_size, axes)) for axes in factors])
    coefficients = list(map(_analyzed, grids, factors))
    jet, sizes = _jet(coefficients, kernel.shape[1], factors, indices, before)
    mixed = {
        a: _on_grids(response, sizes)
        for a, response in _mixed(jet, kernel, indices, before, after).items()
    }
    y = [
        _synthesized(_summed({a: mixed[a][s] for a in mixed}, axes, after), axes)
        for s, axes in enumerate(factors)
    ]
    positions = sum(math.prod(grid.sizes) for grid in y)
    y = joined([grid.positions_first() for grid in y])
    return ops.reshape(y, (positions, -1, kernel.shape[-1])), jet, coefficients


def _gradients(y_bar, coefficients, kernel, factors: Factors, indices):
    """Gradients of `_evaluated` with respect to `x` and `kernel`.

    The transposed operators come in the reverse order: `x_bar` is the same function of
    `y_bar`, with the axes before and after the mix in each other's place. What its mix
    reads are the derivatives of `y_bar` that the gradient of the kernel needs too.

    The jet of `x` is taken again from its coefficients, which costs little: kept, all
    jets together would be a third of the memory of a training step.
    """
    adjoint = ops.transpose(kernel, (0, 2, 1)) if len(kernel.shape) == 3 else kernel
    transposed = [[axis.adjoint for axis in axes] for axes in factors]
    x_bar, jet_bar, _ = _evaluated(y_bar, adjoint, transposed, indices, _AFTER, _BEFORE)
    again = [_Grid(_later(x.values, y_bar), x.sizes) for x in coefficients]
    jet, _ = _jet(again, kernel.shape[1], factors, indices, _BEFORE)
    of_weights = [
        _correlated(jet[alpha[_BEFORE]], jet_bar[alpha[_AFTER]], kernel)
        for alpha in indices
    ]
    return x_bar, ops.stack(of_weights)


def _later(x, done):
    """`x`, but not before `done`.

    TensorFlow else finds that it has computed the jet of `x` before, and keeps it.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    import tensorflow as tf

    with tf.control_dependencies([done]):
        return tf.identity(x)


def _jet(coefficients, channels: int, factors: Factors, indices, before: slice):
    """What the channel mix reads, all scales together, and the grid of each scale."""
    orders = {alpha[before] for alpha in indices}
    if orders == {()}:
        rows = joined([grid.rows(channels) for grid in coefficients])
        return {(): rows}, [grid.sizes for grid in coefficients]
    stacks = [
        _differentiated(grid, axes, before, orders)
        for grid, axes in zip(coefficients, factors, strict=True)
    ]
    jet = {}
    for rest in stacks[0]:
        heads = _heads(orders, rest)
        rows = [stack[rest].stacked_rows(len(heads), channels) for stack in stacks]
        for b, of_order in zip(heads, ops.unstack(joined(rows, axis=1)), strict=True):
            jet[b, *rest] = of_order
    return jet, [next(iter(stack.values())).sizes for stack in stacks]


@dataclasses.dataclass(frozen=True)
class _Grid:
    """Values at the points of a grid: `(*sizes, everything else)`, however folded.

    Several terms may be stacked: `(terms, *sizes, everything else)`.
    """

    values: Any
    sizes: tuple

    def along(self, axis: int, matrix) -> "_Grid":
        """The matrix times each line along the axis."""
        matrix = self._tensor(matrix)
        return self._resized(axis, matrix, ops.matmul(matrix, self._lines(axis)))

    def stacked_along(self, axis: int, matrices: list) -> "_Grid":
        """Each of the matrices times each line along the axis, stacked."""
        several = self._tensor(_stacked(matrices, axis, ahead=True))
        values = ops.matmul(several, self._lines(axis))
        return self._resized(axis, matrices[0], values)

    def summed_along(self, axis: int, matrices: list) -> "_Grid":
        """Of stacked terms: the sum of each matrix times the lines of its term."""
        several = self._tensor(_stacked(matrices, axis, ahead=False))
        values = ops.matmul(several, self._lines(axis, len(matrices)))
        values = ops.sum(values, axis=0) if axis else values
        return self._resized(axis, matrices[0], values)

    def rows(self, channels: int):
        return ops.reshape(self.values, (-1, channels))

    def stacked_rows(self, terms: int, channels: int):
        return ops.reshape(self.values, (terms, -1, channels))

    def positions_first(self):
        return ops.reshape(self.values, (math.prod(self.sizes), -1))

    def _lines(self, axis: int, terms: int = 1):
        """Folded into `(terms, in front, size, behind)`; without what is one.

        In front of the first axis is nothing: terms are then a part of it.
        """
        *front, size = self.sizes[: axis + 1]
        if not front:
            return ops.reshape(self.values, (terms * size, -1))
        shape = (math.prod(front), size, -1)
        return ops.reshape(self.values, shape if terms == 1 else (terms, *shape))

    def _tensor(self, matrix):
        return ops.convert_to_tensor(matrix, self.values.dtype)

    def _resized(self, axis: int, matrix, values) -> "_Grid":
        size = _length(matrix, 0)
        return _Grid(values, (*self.sizes[:axis], size, *self.sizes[axis + 1 :]))


def _stacked(matrices: list, axis: int, ahead: bool):
    """As one factor: before lines along the first axis it is a matrix as well."""
    numpy = np if isinstance(matrices[0], np.ndarray) else ops
    if axis == 0:
        return numpy.concatenate(matrices, axis=0 if ahead else 1)
    return numpy.expand_dims(numpy.stack(matrices), 1)


def _size(axis: AxisFactors):
    return _length(axis.jets[0] if axis.analysis is None else axis.analysis, 1)


def _length(matrix, axis: int):
    """Static where it is known: asking the graph costs an operation."""
    length = matrix.shape[axis]
    return ops.shape(matrix)[axis] if length is None else length


def _on_grids(x, sizes: Sequence[tuple]) -> list[_Grid]:
    parts = split(x, [math.prod(of_scale) for of_scale in sizes])
    return [_Grid(part, of_scale) for part, of_scale in zip(parts, sizes, strict=True)]


def _analyzed(x: _Grid, axes: Sequence[AxisFactors]) -> _Grid:
    """`(A ⊗ … ⊗ A) x`; the first axis first, whose product is the most efficient."""
    for number, axis in enumerate(axes):
        if axis.analysis is not None:
            x = x.along(number, axis.analysis)
    return x


def _synthesized(y: _Grid, axes: Sequence[AxisFactors]) -> _Grid:
    """`(U ⊗ … ⊗ U) y`; the first axis last."""
    for number, axis in reversed(list(enumerate(axes))):
        if axis.synthesis is not None:
            y = y.along(number, axis.synthesis)
    return y


def _differentiated(x: _Grid, axes, some: slice, orders: set) -> dict[tuple, _Grid]:
    """`(D_b1 ⊗ D_b2 ⊗ …) x` along some of the axes, for each `b` of the orders.

    Returns:
        Those that end alike, stacked by their first order, which share all other
        products.
    """
    first, *others = range(len(axes))[some]
    jet = {(): x}
    for i, number in reversed(list(enumerate(others, 1))):
        endings = {order[i:] for order in orders}
        jet = {
            (b, *rest): jet[tuple(rest)].along(number, axes[number].jets[b])
            for b, *rest in endings
        }
    return {
        rest: grid.stacked_along(
            first, [axes[first].jets[b] for b in _heads(orders, rest)]
        )
        for rest, grid in jet.items()
    }


def _heads(orders, rest: tuple) -> list[int]:
    """The first orders of those that end in `rest`."""
    return sorted(b for b, *ending in orders if tuple(ending) == rest)


def _summed(jet: dict[tuple, _Grid], axes, some: slice) -> _Grid:
    """`Σ_a (D_a1 ⊗ D_a2 ⊗ …) z_a` along some of the axes."""
    for number in range(len(axes))[some]:
        sums = {}
        for rest in {tuple(rest) for _, *rest in jet}:
            heads = _heads(jet, rest)
            terms = [jet[a, *rest] for a in heads]
            stack = _Grid(ops.stack([z.values for z in terms]), terms[0].sizes)
            matrices = [axes[number].jets[a] for a in heads]
            sums[rest] = stack.summed_along(number, matrices)
        jet = sums
    return jet[()]


def _mixed(jet: Jet, kernel, indices, before: slice, after: slice) -> Jet:
    """`z_a = Σ_b C_ab r_b` at every position."""
    mix = ops.multiply if len(kernel.shape) == 2 else ops.matmul
    return _sums(
        (alpha[after], mix(jet[alpha[before]], weight))
        for alpha, weight in zip(indices, ops.unstack(kernel), strict=True)
    )


def _correlated(response, response_bar, kernel):
    """Gradient of `_mixed` for one of its weights: `Σ r z̄ᵀ` over all positions."""
    if len(kernel.shape) == 2:
        return ops.sum(response * response_bar, axis=0)
    return ops.matmul(ops.transpose(response), response_bar)


def _sums(terms) -> dict:
    totals = {}
    for key, term in terms:
        totals[key] = totals[key] + term if key in totals else term
    return totals
