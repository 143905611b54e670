"""Figures of kernels and learned filters."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn.visualization._figures import draw_signed, new_figure
from keras_gdrn.visualization._filters import basis_kernels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_basis_kernels(
    sigma: float | Sequence[float] = (1.0, 4.0), order: int = 3
) -> "Figure":
    """The basis of a Gaussian derivative layer: one row for each order, at each scale.

    Drawn as `basis_kernels` gives them, white where positive and black where negative,
    each kernel on its own gray scale with zero in the middle.

    Source: Perzanowski & Lindeberg, the figure of discrete Gaussian derivative kernels.

    Args:
        sigma: Scale in pixels, or several.
        order: Highest order of differentiation.

    Returns:
        A figure.

    Raises:
        ValueError: If a scale is not a positive number or `order` is negative.
        ImportError: If matplotlib is not installed.
    """
    sigmas = [float(value) for value in np.atleast_1d(sigma)]
    bases = [basis_kernels(value, order) for value in sigmas]
    side = 1.15 * (order + 1)
    figure = new_figure((side * len(sigmas), side + 0.4))
    parts = figure.subfigures(1, len(sigmas), squeeze=False)[0]
    for part, value, basis in zip(parts, sigmas, bases, strict=True):
        part.suptitle(f"σ = {value:g}")
        _draw_triangle(part, basis, order)
    return figure


def plot_effective_filters(
    filters: Mapping[str, np.ndarray], *, columns: int = 10
) -> "Figure":
    """Learned filters: a row for each layer, with its name and the filters' size.

    White where a filter is zero, red where positive, blue where negative, each filter
    on its own color scale.

    Source: Perzanowski & Lindeberg, Fig. learned-filters-standard-appendix.

    Args:
        filters: Filters of `effective_filters`, or a part of them, `(size, size, …)`,
            by the names of the layers. Of more than `columns` filters, that many are
            drawn, evenly spaced in the array.
        columns: Largest number of filters in a row, at least 1.

    Returns:
        A figure.

    Raises:
        ValueError: If there are no filters, or `columns` is less than 1.
        ImportError: If matplotlib is not installed.
    """
    if columns < 1:
        raise ValueError(f"`columns` must be >= 1. Received: columns={columns}")
    rows = {name: _chosen(stack, columns) for name, stack in filters.items()}
    columns = max(map(len, rows.values()), default=0)
    if not columns:
        raise ValueError("`filters` must hold at least one filter.")
    figure = new_figure((0.9 + 0.8 * columns, 0.8 * len(rows)), layout="constrained")
    widths = [0.9, *[0.8] * columns]
    grid = figure.subplots(len(rows), 1 + columns, squeeze=False, width_ratios=widths)
    for axes in grid.flat:
        axes.set_axis_off()
    for row, (name, stack) in zip(grid, rows.items(), strict=True):
        size = stack.shape[-1]
        label = f"{name}\n{size} × {size}"
        row[0].text(0.5, 0.5, label, ha="center", va="center", fontsize=8)
        for axes, values in zip(row[1:], stack, strict=False):
            draw_signed(axes, values, "bwr")
    return figure


def _chosen(filters: np.ndarray, count: int) -> np.ndarray:
    """At most `count` of the filters, as `(filter, size, size)`."""
    filters = np.asarray(filters)
    stack = np.moveaxis(filters.reshape(*filters.shape[:2], -1), -1, 0)
    chosen = np.linspace(0, len(stack) - 1, min(count, len(stack)))
    return stack[chosen.round().astype(int)]


def _draw_triangle(part: Any, basis: dict, order: int) -> None:
    place = {"left": 0.03, "right": 0.97, "bottom": 0.02, "top": 0.86}
    columns = 2 * (order + 1)
    grid = part.add_gridspec(order + 1, columns, wspace=0.15, hspace=0.3, **place)
    for alpha, kernel in basis.items():
        total, along_y = sum(alpha), alpha[0]
        first = order - total + 2 * along_y
        axes = part.add_subplot(grid[total, first : first + 2])
        draw_signed(axes, kernel, "gray")
        subscript = "x" * alpha[1] + "y" * alpha[0]
        axes.set_title(f"$g_{{{subscript}}}$" if total else "$g$", fontsize=10, pad=3)
