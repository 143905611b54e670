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


def joined(parts: list):
    return ops.concatenate(parts, axis=0) if len(parts) > 1 else parts[0]


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
    orders = list(dict.fromkeys(alpha[before] for alpha in indices))
    jets = [
        _differentiated(grid, axes, before, orders)
        for grid, axes in zip(coefficients, factors, strict=True)
    ]
    jet = {b: joined([of_scale[b].rows(channels) for of_scale in jets]) for b in orders}
    return jet, [of_scale[orders[0]].sizes for of_scale in jets]


@dataclasses.dataclass(frozen=True)
class _Grid:
    """Values at the points of a grid: `(*sizes, everything else)`, however folded."""

    values: Any
    sizes: tuple

    def lines(self, axis: int) -> "_Grid":
        """Folded into `(in front, size, behind)`; in front of the first is nothing."""
        *front, size = self.sizes[: axis + 1]
        shape = (math.prod(front), size, -1) if front else (size, -1)
        return _Grid(ops.reshape(self.values, shape), self.sizes)

    def along(self, axis: int, matrix) -> "_Grid":
        """The matrix times each line along the axis, of values that are folded so."""
        matrix = ops.convert_to_tensor(matrix, self.values.dtype)
        sizes = (*self.sizes[:axis], _length(matrix, 0), *self.sizes[axis + 1 :])
        return _Grid(ops.matmul(matrix, self.values), sizes)

    def rows(self, channels: int):
        return ops.reshape(self.values, (-1, channels))

    def positions_first(self):
        return ops.reshape(self.values, (math.prod(self.sizes), -1))


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
            x = x.lines(number).along(number, axis.analysis)
    return x


def _synthesized(y: _Grid, axes: Sequence[AxisFactors]) -> _Grid:
    """`(U ⊗ … ⊗ U) y`; the first axis last."""
    for number, axis in reversed(list(enumerate(axes))):
        if axis.synthesis is not None:
            y = y.lines(number).along(number, axis.synthesis)
    return y


def _differentiated(x: _Grid, axes, some: slice, orders: list[tuple]) -> Jet:
    """`(D_b1 ⊗ D_b2 ⊗ …) x` along some of the axes, for each `b` of the orders.

    Orders that end alike share their products.
    """
    jet = {(): x}
    for i, number in reversed(list(enumerate(range(len(axes))[some]))):
        endings = dict.fromkeys(order[i:] for order in orders)
        lines = {rest: grid.lines(number) for rest, grid in jet.items()}
        jet = {
            (b, *rest): lines[tuple(rest)].along(number, axes[number].jets[b])
            for b, *rest in endings
        }
    return jet


def _summed(jet: Jet, axes, some: slice) -> _Grid:
    """`Σ_a (D_a1 ⊗ D_a2 ⊗ …) z_a` along some of the axes.

    As one product, `[D_0 | D_1 | …]` with the lines of all terms end to end.
    """
    for number in range(len(axes))[some]:
        terms: dict[tuple, list] = {}
        for (a, *rest), grid in jet.items():
            terms.setdefault(tuple(rest), []).append((a, grid.lines(number)))
        jet = {
            rest: _end_to_end([grid for _, grid in those], number).along(
                number, _side_by_side([axes[number].jets[a] for a, _ in those])
            )
            for rest, those in terms.items()
        }
    return jet[()]


def _end_to_end(grids: list[_Grid], axis: int) -> _Grid:
    values = [grid.values for grid in grids]
    if len(values) == 1:
        return grids[0]
    return _Grid(ops.concatenate(values, axis=-2), grids[0].sizes)


def _side_by_side(matrices: list):
    if isinstance(matrices[0], np.ndarray):
        return np.concatenate(matrices, axis=1)
    return ops.concatenate(matrices, axis=1)


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
