"""How a Gaussian derivative layer is evaluated, as functions over `keras.ops`.

    y = Σ_α C_α (K_α1 ⊗ … ⊗ K_αD) x,   K_a ≈ U D_a A along each axis

Each operator is a small matrix. `A` brings a map into few coefficients and `U` brings
them back (`kernels.axis_factors`; where that saves nothing they are the identity), so
that channels are mixed where there are few positions. Derivatives along the first axis
are taken *after* the mix, those along the other axes before it; in two dimensions

    y = (U ⊗ U) Σ_a (D_a ⊗ 1) Σ_b C_ab r_b,   r_b = (1 ⊗ D_b) (A ⊗ A) x,

so that a jet of order two needs three products along each axis, not three and five;
stacked, these are one.

Maps are given positions first, `(positions, batch, channels)`, those of one scale after
those of another: each product along an axis then has long rows, and all scales mix
their channels in one product.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_gdrn.kernels import AxisFactors
from keras_gdrn.layers._fine_scales import is_fine, smoothed_and_mixed
from keras_gdrn.layers._grids import (
    Grid,
    folded,
    joined,
    later,
    length,
    on_grids,
    split,
    summed_along,
    unfolded,
)

# For each scale, the factors of each axis.
Factors = Sequence[Sequence[AxisFactors]]


class Jet(NamedTuple):
    """Responses, all scales together.

    Attributes:
        rows: By their orders of differentiation along some of the axes.
        sizes: Of the grid of each scale.
    """

    rows: dict[tuple[int, ...], Any]
    sizes: list[tuple]


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
        constant: Whether the factors are constants, in tuples as are the indices. Then
            the gradient is written out.

    Returns:
        `(positions, batch, filters)`.
    """
    return _prepared(_filtered, factors, indices, constant)(x, kernel)


def filtered_maps(x, kernel, factors: Factors, indices, constant=True) -> Any:
    """`filtered` of whole maps `(batch, *spatial, channels)`, scales in the batch."""
    return _prepared(_filtered_maps, factors, indices, constant)(x, kernel)


def _prepared(
    function: Callable, factors: Factors, indices, constant: bool
) -> Callable:
    if constant and keras.backend.backend() == "jax":
        return _compiled(function, factors, indices)
    return functools.partial(function, factors, indices, constant)


@functools.lru_cache(maxsize=128)  # a search builds hundreds of networks
def _compiled(function: Callable, factors: Factors, indices) -> Callable:
    """Outside of compiled functions, JAX would compile each operation for itself."""
    import jax

    return jax.jit(functools.partial(function, factors, indices, True))


def _filtered_maps(factors: Factors, indices, constant: bool, x, kernel):
    first, *others = factors
    if not others and is_fine(first, kernel):
        return smoothed_and_mixed(x, kernel, first, indices)
    spatial = tuple(ops.shape(x)[1:-1])
    maps = unfolded(x, len(factors))
    y = _filtered(factors, indices, constant, maps, kernel)
    return folded(y, len(factors), spatial)


def _filtered(factors: Factors, indices, constant: bool, x, kernel):
    """Each fine scale by itself, the others together."""
    runs: list[tuple[bool, Factors]] = []
    scales = itertools.groupby(factors, key=lambda axes: is_fine(axes, kernel))
    for fine, run in scales:
        runs += [(True, [axes]) for axes in run] if fine else [(False, tuple(run))]
    sizes = [sum(math.prod(map(_size, axes)) for axes in run) for _, run in runs]
    y = []
    for (fine, run), size, part in zip(runs, sizes, split(x, sizes), strict=True):
        maps = ops.reshape(part, (size, *ops.shape(x)[1:]))
        if fine:
            spatial = tuple(map(_size, run[0]))
            mixed = smoothed_and_mixed(maps, kernel, run[0], indices, spatial)
            y.append(unfolded(mixed, 1))
        elif constant:
            y.append(_filtered_by_coefficients(maps, kernel, run, indices))
        else:
            y.append(_evaluated(maps, kernel, run, indices)[0])
    return joined(y)


def _filtered_by_coefficients(x, kernel, factors: Factors, indices):
    """With its gradient written out."""

    @ops.custom_gradient
    def of_variables(x, kernel):
        y, coefficients = _evaluated(x, kernel, factors, indices)

        def gradient(*args, upstream=None):
            y_bar = args[0] if upstream is None else upstream
            return _gradients(y_bar, coefficients, kernel, factors, indices)

        return y, gradient

    return of_variables(x, kernel)


def pointwise(x, weight):
    """The matrix `weight` `(channels, filters)` at every position of `x`."""
    shape = ops.shape(x)
    y = ops.matmul(ops.reshape(x, (-1, shape[-1])), weight)
    # All sizes: of no images JAX does not find one that is missing.
    return ops.reshape(y, (*shape[:-1], weight.shape[-1]))


def _evaluated(x, kernel, factors: Factors, indices):
    """The result, and the coefficients of `x`. The jet is let go once it is mixed."""
    coefficients = _analyzed(x, factors)
    mixed = _mixed(
        _jet(coefficients, factors, indices, _BEFORE),
        *(kernel, indices, _BEFORE, _AFTER),
    )
    return _synthesized(mixed, kernel.shape[-1], factors, _AFTER), coefficients


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
    of_y_bar = _analyzed(y_bar, transposed)
    jet_bar = _jet(of_y_bar, transposed, indices, _AFTER)
    mixed = _mixed(jet_bar, adjoint, indices, _AFTER, _BEFORE)
    x_bar = _synthesized(mixed, kernel.shape[1], transposed, _BEFORE)
    again = [
        dataclasses.replace(x, values=later(x.values, y_bar)) for x in coefficients
    ]
    jet = _jet(again, factors, indices, _BEFORE)
    of_weights = [
        _correlated(jet.rows[alpha[_BEFORE]], jet_bar.rows[alpha[_AFTER]], kernel)
        for alpha in indices
    ]
    return x_bar, ops.stack(of_weights)


def _jet(coefficients, factors: Factors, indices, before: slice) -> Jet:
    """What the channel mix reads."""
    orders = {alpha[before] for alpha in indices}
    if orders == {()}:
        rows = joined([grid.rows() for grid in coefficients])
        return Jet({(): rows}, [grid.sizes for grid in coefficients])
    stacks = [
        _differentiated(grid, axes, before, orders)
        for grid, axes in zip(coefficients, factors, strict=True)
    ]
    jet = Jet({}, [next(iter(stack.values())).sizes for stack in stacks])
    for rest in stacks[0]:
        heads = _heads(orders, rest)
        rows = [stack[rest].stacked_rows(len(heads)) for stack in stacks]
        for b, of_order in zip(heads, ops.unstack(joined(rows, axis=1)), strict=True):
            jet.rows[b, *rest] = of_order
    return jet


def _mixed(jet: Jet, kernel, indices, before: slice, after: slice) -> Jet:
    """`z_a = Σ_b C_ab r_b` at every position."""
    mix = ops.multiply if len(kernel.shape) == 2 else ops.matmul
    z = {}
    for alpha, weight in zip(indices, ops.unstack(kernel), strict=True):
        a, term = alpha[after], mix(jet.rows[alpha[before]], weight)
        z[a] = z[a] + term if a in z else term
    return Jet(z, jet.sizes)


def _analyzed(x, factors: Factors) -> list[Grid]:
    """`(A ⊗ … ⊗ A) x`; the first axis first, whose product is the most efficient."""
    grids = on_grids(x, [tuple(map(_size, axes)) for axes in factors])
    for s, axes in enumerate(factors):
        for number, axis in enumerate(axes):
            if axis.analysis is not None:
                grids[s] = grids[s].along(number, axis.analysis)
    return grids


def _size(axis: AxisFactors):
    if axis.composed:
        return axis.composed.smoothing.pixels
    return length(axis.jets[0] if axis.analysis is None else axis.analysis, 1)


def _synthesized(mixed: Jet, filters: int, factors: Factors, after: slice):
    """`(U ⊗ … ⊗ U) Σ_a (D_a1 ⊗ D_a2 ⊗ …) z_a`; the first axis last."""
    z = {a: on_grids(rows, mixed.sizes) for a, rows in mixed.rows.items()}
    y = [
        _summed({a: z[a][s] for a in z}, factors[s], after) for s in range(len(factors))
    ]
    for s, axes in enumerate(factors):
        for number, axis in reversed(list(enumerate(axes))):
            if axis.synthesis is not None:
                y[s] = y[s].along(number, axis.synthesis)
    positions = sum(math.prod(grid.sizes) for grid in y)
    rows = joined([grid.positions_first() for grid in y])
    return ops.reshape(rows, (positions, -1, filters))


def _differentiated(x: Grid, axes, some: slice, orders: set) -> dict[tuple, Grid]:
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


def _summed(jet: dict[tuple, Grid], axes, some: slice) -> Grid:
    """`Σ_a (D_a1 ⊗ D_a2 ⊗ …) z_a` along some of the axes."""
    for number in range(len(axes))[some]:
        sums = {}
        for rest in {tuple(rest) for _, *rest in jet}:
            heads = _heads(jet, rest)
            terms = [jet[a, *rest] for a in heads]
            matrices = [axes[number].jets[a] for a in heads]
            sums[rest] = summed_along(number, matrices, terms)
        jet = sums
    return jet[()]


def _correlated(response, response_bar, kernel):
    """Gradient of `_mixed` for one of its weights: `Σ r z̄ᵀ` over all positions."""
    if len(kernel.shape) == 2:
        return ops.sum(response * response_bar, axis=0)
    return ops.matmul(ops.transpose(response), response_bar)
