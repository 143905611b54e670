"""Figures of images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_gdrn.visualization._figures import draw_image, new_figure, size_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches: of an image with the gap around it, and of the title above a row.
CELL, GAP, TITLE = 1.05, 0.05, 0.25


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
    heights = [CELL + TITLE if any(title for title, _ in row) else CELL for row in rows]
    width, height = columns * CELL, sum(heights)
    figure, low = new_figure((width, height)), height
    # In shares of the figure: a layout engine would leave more room below titles.
    size = (CELL - GAP) / width, (CELL - GAP) / height
    for row, of_row in zip(rows, heights, strict=True):
        low -= of_row
        for column, (title, image) in enumerate(row):
            place = (column * CELL + GAP / 2) / width, (low + GAP / 2) / height
            draw_image(figure.add_axes((*place, *size)), image, title)
    return figure
