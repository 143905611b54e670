"""Figures of images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

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
    width, bottom = 1.05 * columns, sum(heights)
    figure = new_figure((width, bottom))
    for row, height in zip(rows, heights, strict=True):
        bottom -= height
        for column, (title, image) in enumerate(row):
            left = (1.05 * column + 0.025) / width
            place = (left, (bottom + 0.025) / sum(heights), 1 / width, 1 / sum(heights))
            draw_image(figure.add_axes(place), image, title)
    return figure
