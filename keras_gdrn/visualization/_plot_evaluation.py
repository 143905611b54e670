"""Figures of what `evaluation` returns."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from keras_gdrn.evaluation import ScaleGeneralization, ScaleSelectionHistogram
from keras_gdrn.visualization._figures import new_axes, short_number, size_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^v<>pX*"


def plot_scale_generalization(
    results: Mapping[str, ScaleGeneralization],
    *,
    trained_at: float = 1.0,
    axes: "Axes | None" = None,
) -> "Figure":
    """Accuracy against size factor, one curve for each model.

    Args:
        results: Results of `scale_generalization`, by the names of the models.
        trained_at: Size factor of the training images, which is shaded.
        axes: Where to draw; by default in a new figure.

    Returns:
        A figure; that of `axes`, if they are given.

    Raises:
        ValueError: If there are no results.
        ImportError: If matplotlib is not installed.
    """
    if not results:
        raise ValueError("`results` must hold at least one model's results.")
    figure, plot = new_axes(axes)
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
    columns = _legend_columns(results)
    plot.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False)
    if axes is None:  # more rows of the legend must not shrink the curves
        rows = math.ceil(len(results) / columns)
        figure.set_figheight(figure.get_figheight() + 0.22 * (rows - 1))
    return figure


def _legend_columns(names: Iterable[str]) -> int:
    """As many columns, at most three, as a figure of the usual width has room for."""
    line, marker = 76, 9  # characters
    lengths = [marker + len(name) for name in names]
    for columns in (3, 2):
        parts = np.array_split(lengths, columns)
        if sum(max(part, default=0) for part in parts) <= line:
            return columns
    return 1


def plot_scale_selection_histogram(
    histogram: ScaleSelectionHistogram, *, axes: "Axes | None" = None
) -> "Figure":
    """Heat map of each scale channel's share in the decisions, dark where it is large.

    Scale covariance shows as a straight line: the selected scale grows with the size.

    Args:
        histogram: What `scale_selection_histogram` returned.
        axes: Where to draw; by default in a new figure.

    Returns:
        A figure; that of `axes`, if they are given.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    figure, plot = new_axes(axes)
    order = np.argsort(histogram.sigma0)
    shares = histogram.shares[:, order].T
    image = plot.imshow(shares, origin="lower", aspect="auto", cmap="Greys", vmin=0)
    plot.set_xticks(
        range(len(histogram.factors)), [size_label(f) for f in histogram.factors]
    )
    plot.set_yticks(
        range(len(order)), [short_number(sigma) for sigma in histogram.sigma0[order]]
    )
    plot.set_xlabel("size factor of the test images")
    plot.set_ylabel("initial scale σ₀ of the scale channel [pixels]")
    bar = figure.colorbar(image, ax=plot)
    bar.set_label("mean share in the decision")
    return figure
