"""Figures of images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn.visualization._figures import draw_image, new_figure, size_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_sizes(images: Mapping[float, np.ndarray]) -> "Figure":
    """The same images at several size factors: a row for each image.

    Args:
        images: For each size factor images `(image, height, width, channel)` with
            values in [0, 1], the same ones in the same order.

    Returns:
        A figure.

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

    Returns:
        A figure.

    Raises:
        ValueError: If there are no images.
        ImportError: If matplotlib is not installed.
    """
    rows = list(rows)
    columns = max(map(len, rows), default=0)
    if not columns:
        raise ValueError("`rows` must hold at least one image.")
    heights = [1.3 if any(title for title, _ in row) else 1.05 for row in rows]
    figure = new_figure((1.05 * columns, sum(heights)), layout="constrained")
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.02, h_pad=0.02, wspace=0.0, hspace=0.0)
    grid = figure.add_gridspec(len(rows), columns, height_ratios=heights)
    for i, row in enumerate(rows):
        for j, (title, image) in enumerate(row):
            draw_image(figure.add_subplot(grid[i, j]), image, title)
    return figure
