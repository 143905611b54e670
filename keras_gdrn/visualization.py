"""Figures of the paper's kinds, drawn by matplotlib (the extra `viz`).

Values come from pure functions (`evaluation`, `jet_kernels`); here they are only drawn.
Each function returns a `matplotlib.figure.Figure`, to be shown by a notebook or saved
by its `savefig`; pyplot and its global state are not used.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn import kernels
from keras_gdrn.evaluation import ScaleGeneralisation, ScaleSelectionHistogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^v<>pX*"


def plot_scale_generalisation(
    results: Mapping[str, ScaleGeneralisation],
    *,
    trained_at: float = 1.0,
    axes: "Axes | None" = None,
) -> "Figure":
    """Accuracy against size factor, one curve for each model.

    Args:
        results: For each model's name what `scale_generalisation` returned.
        trained_at: Size factor of the training images, which is shaded.
        axes: Where to draw; by default in a new figure.

    Raises:
        ValueError: If there are no results.
        ImportError: If matplotlib is not installed.
    """
    if not results:
        raise ValueError("`results` must hold at least one model's results.")
    figure, plot = _axes(axes)
    width = 2 ** (1 / 8)  # half the step of the usual size factors, to either side
    plot.axvspan(trained_at / width, trained_at * width, color="0.9", lw=0, zorder=0)
    for index, (name, result) in enumerate(results.items()):
        marker = _MARKERS[index % len(_MARKERS)]
        accuracies = 100 * result.accuracies
        plot.plot(result.factors, accuracies, marker=marker, ms=5, label=name)
    factors = sorted({float(f) for result in results.values() for f in result.factors})
    plot.set_xscale("log", base=2)
    plot.set_xticks(factors, [size_label(factor) for factor in factors])
    plot.minorticks_off()
    plot.grid(alpha=0.3)
    plot.set_xlabel("size factor of the test images (training: shaded)")
    plot.set_ylabel("accuracy [%]")
    # Above the curves, which may be anywhere.
    plot.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
    return figure


def plot_scale_selection_histogram(
    histogram: ScaleSelectionHistogram, *, axes: "Axes | None" = None
) -> "Figure":
    """Heat map of each scale channel's share in the decisions, dark where it is large.

    Scale covariance shows as a straight line: the selected scale grows with the size.

    Args:
        histogram: What `scale_selection_histogram` returned.
        axes: Where to draw; by default in a new figure.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    figure, plot = _axes(axes)
    order = np.argsort(histogram.sigma0)
    shares = histogram.shares[:, order].T
    image = plot.imshow(shares, origin="lower", aspect="auto", cmap="Greys", vmin=0)
    plot.set_xticks(
        range(len(histogram.factors)), [size_label(f) for f in histogram.factors]
    )
    plot.set_yticks(
        range(len(order)), [_number(sigma) for sigma in histogram.sigma0[order]]
    )
    plot.set_xlabel("size factor of the test images")
    plot.set_ylabel("initial scale σ₀ of the scale channel [pixels]")
    bar = figure.colorbar(image, ax=plot)
    bar.set_label("mean share in the decision")
    return figure


def basis_kernels(
    sigma: float | Sequence[float] = (1.0, 4.0), order: int = 3
) -> "Figure":
    """The basis of a Gaussian derivative layer: one row for each order, at each scale.

    Drawn as `jet_kernels` gives them, white where positive and black where negative,
    each kernel on its own gray scale with zero in the middle.

    Source: Perzanowski & Lindeberg, the figure of discrete Gaussian derivative kernels.

    Args:
        sigma: Scale in pixels, or several.
        order: Highest order of differentiation.

    Raises:
        ValueError: If a scale is not a positive number or `order` is negative.
        ImportError: If matplotlib is not installed.
    """
    sigmas = [float(value) for value in np.atleast_1d(sigma)]
    jets = [jet_kernels(value, order) for value in sigmas]
    side = 1.15 * (order + 1)
    figure = _figure((side * len(sigmas), side + 0.4))
    parts = figure.subfigures(1, len(sigmas), squeeze=False)[0]
    for part, value, jet in zip(parts, sigmas, jets, strict=True):
        part.suptitle(f"σ = {value:g}")
        _draw_triangle(part, jet, order)
    return figure


def plot_sizes(images: Mapping[float, np.ndarray]) -> "Figure":
    """The same images at several size factors: a row for each image.

    Args:
        images: For each size factor images `(image, height, width, channel)` with
            values in [0, 1], the same ones in the same order.

    Raises:
        ValueError: If there are no images.
        ImportError: If matplotlib is not installed.
    """
    rows = min((len(stack) for stack in images.values()), default=0)
    if not rows:
        raise ValueError("`images` must hold at least one image for each size factor.")
    by_size = sorted(images.items())
    return plot_image_grid(
        [
            (size_label(factor) if row == 0 else "", stack[row])
            for factor, stack in by_size
        ]
        for row in range(rows)
    )


def plot_image_grid(rows: Iterable[Sequence[tuple[str, np.ndarray]]]) -> "Figure":
    """Images in rows, each with its title above it.

    Args:
        rows: For each row the titles, which may be empty, and the images, `(height,
            width, channel)` with values in [0, 1].

    Raises:
        ValueError: If there are no images.
        ImportError: If matplotlib is not installed.
    """
    rows = list(rows)
    columns = max(map(len, rows), default=0)
    if not columns:
        raise ValueError("`rows` must hold at least one image.")
    heights = [1.3 if any(title for title, _ in row) else 1.05 for row in rows]
    figure = _figure((1.05 * columns, sum(heights)), layout="constrained")
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.02, h_pad=0.02, wspace=0.0, hspace=0.0)
    grid = figure.add_gridspec(len(rows), columns, height_ratios=heights)
    for i, row in enumerate(rows):
        for j, (title, image) in enumerate(row):
            axes = figure.add_subplot(grid[i, j])
            axes.imshow(np.squeeze(image), cmap="gray", vmin=0, vmax=1)
            axes.set_title(title, fontsize=9, pad=3)
            axes.set_axis_off()
    return figure


def size_label(factor: float) -> str:
    """Short form of a size factor: 1/2, 0.71, 1, 1.41, 2."""
    inverse = 1 / factor
    if factor < 1 and math.isclose(inverse, round(inverse)):
        return f"1/{round(inverse)}"
    return _number(factor)


def jet_kernels(
    sigma: float, order: int, radius: int | None = None
) -> dict[tuple[int, ...], np.ndarray]:
    """Scale-normalized derivatives `σ^|α| g_α` of the discrete Gaussian.

    All with `|α| <= order`, as functions of the position: the kernels of a true
    convolution, which a layer's correlation applies reflected.

    Args:
        sigma: Scale in pixels.
        order: Highest order of differentiation, 0 or more.
        radius: Where the kernels are cut off; by default `4 sigma`, at least 5 pixels.

    Returns:
        For each multi-index (along y, along x) an array `(2 radius + 1, 2 radius + 1)`,
        by order and from derivatives along x to those along y.

    Raises:
        ValueError: If `sigma` is not a positive number or `order` is negative.
    """
    kernels.check_sigma(sigma)
    if order < 0:
        raise ValueError(f"`order` must be >= 0. Received: order={order}")
    if radius is None:
        radius = max(5, math.ceil(4 * sigma))
    along = [
        kernels.gaussian_derivative(sigma, a, radius)[::-1] for a in range(order + 1)
    ]
    indices = kernels.multi_indices(2, order, zero_order=True)
    indices = sorted(indices, key=lambda alpha: (sum(alpha), alpha))
    return {alpha: np.outer(along[alpha[0]], along[alpha[1]]) for alpha in indices}


def _draw_triangle(part: Any, jet: dict, order: int) -> None:
    place = {"left": 0.03, "right": 0.97, "bottom": 0.02, "top": 0.86}
    columns = 2 * (order + 1)
    grid = part.add_gridspec(order + 1, columns, wspace=0.15, hspace=0.3, **place)
    for alpha, kernel in jet.items():
        total, along_y = sum(alpha), alpha[0]
        first = order - total + 2 * along_y
        axes = part.add_subplot(grid[total, first : first + 2])
        limit = np.abs(kernel).max()
        axes.imshow(kernel, cmap="gray", vmin=-limit, vmax=limit)
        subscript = "x" * alpha[1] + "y" * alpha[0]
        axes.set_title(f"$g_{{{subscript}}}$" if total else "$g$", fontsize=10, pad=3)
        axes.set_axis_off()


def _axes(axes: "Axes | None") -> tuple[Any, Any]:
    """The axes to draw in and their figure, both new where none are given."""
    if axes is not None:
        return axes.figure, axes
    figure = _figure((6.4, 4.2), layout="constrained")
    return figure, figure.add_subplot()


def _figure(size: tuple[float, float], **options: Any) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib, which is the extra `viz`: "
            "pip install keras_gdrn[viz]"
        ) from error
    return Figure(figsize=size, dpi=150, **options)


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 1 else f"{value:.3g}"
