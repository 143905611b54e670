"""New figures, and the numbers on them."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(size: tuple[float, float], **options: Any) -> "Figure":
    """A figure of a size in inches, or an error that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib: `pip install matplotlib`, or the extra `viz` of "
            "this package"
        ) from error
    return Figure(figsize=size, dpi=150, **options)


def new_axes(axes: "Axes | None") -> tuple[Any, Any]:
    """The figure and the axes to draw in, both new if none are given."""
    if axes is not None:
        return axes.figure, axes
    figure = new_figure((6.4, 4.2), layout="constrained")
    return figure, figure.add_subplot()


def draw_image(axes: Any, image: np.ndarray, title: str) -> None:
    """An image `(height, width, channel)` with values in [0, 1], without ticks."""
    axes.imshow(np.squeeze(image), cmap="gray", vmin=0, vmax=1)
    axes.set_title(title, fontsize=9, pad=3)
    axes.set_axis_off()


def draw_signed(axes: Any, values: np.ndarray, cmap: str) -> None:
    """Values `(height, width)` in colors with zero in the middle, without ticks."""
    limit = np.abs(values).max() or 1.0
    axes.imshow(values, cmap=cmap, vmin=-limit, vmax=limit)
    axes.set_axis_off()


def size_label(factor: float) -> str:
    """Short form of a size factor or a scale: 1/2, 0.71, 1, 1.41, 2.

    Args:
        factor: The number, positive.

    Returns:
        At most three digits, or a fraction of one.
    """
    inverse = 1 / factor
    if factor < 1 and math.isclose(inverse, round(inverse)):
        return f"1/{round(inverse)}"
    return short_number(factor)


def short_number(value: float) -> str:
    return f"{value:.2g}" if value < 1 else f"{value:.3g}"
