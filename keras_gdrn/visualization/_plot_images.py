"""Figures of images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn.visualization._figures import draw_image, new_figure, size_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches: an image with the gap around it, the gap, and the title above a row.
CELL, GAP, TITLE = 1.05, 0.05, 0.25
# Inches: an image next to activation maps, and the color bar with its numbers.
SIDE, BAR = 1.4, 0.4


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
    # In fractions of the figure: a layout engine would leave more room below titles.
    size = (CELL - GAP) / width, (CELL - GAP) / height
    for row, of_row in zip(rows, heights, strict=True):
        low -= of_row
        for column, (title, image) in enumerate(row):
            place = (column * CELL + GAP / 2) / width, (low + GAP / 2) / height
            draw_image(figure.add_axes((*place, *size)), image, title)
    return figure


def plot_activation_maps(
    images: np.ndarray,
    maps: np.ndarray,
    sigma0: Sequence[float] = (0.5, 1.0, 2.0),
    *,
    names: Sequence[str] | None = None,
) -> "Figure":
    """Images, each with its activation maps: a row for each image.

    Each map has its own color scale, from zero to its maximum, with a color bar.

    Source: Perzanowski & Lindeberg, Fig. activation-maps-stl10.

    Args:
        images: `(image, height, width, channel)` with values in [0, 1].
        maps: `(image, scale, height, width)`, as `activation_maps` returns them.
        sigma0: Initial scales of the maps, which are their titles.
        names: A title for each image, such as its class.

    Returns:
        A figure.

    Raises:
        ValueError: If there are no images, or not a map for each image and scale.
        ImportError: If matplotlib is not installed.
    """
    images, maps = np.asarray(images), np.asarray(maps)
    names = [""] * len(images) if names is None else names
    rows, scales = len(images), len(sigma0)
    fits = maps.shape == (rows, scales, *images.shape[1:3]) and len(names) == rows
    if not rows or not fits:
        raise ValueError(
            "`maps` must hold a map for each image and each of `sigma0`, and `names` a "
            f"title for each image; at least one. Received: images {images.shape}, "
            f"maps {maps.shape}, {scales} scales, {len(names)} names"
        )
    size = (SIDE + scales * (SIDE + BAR), rows * (SIDE + 0.2))
    figure = new_figure(size, layout="compressed")
    grid = figure.subplots(rows, 1 + scales, squeeze=False)
    titles = [f"σ₀ = {size_label(sigma)}" for sigma in sigma0]
    for row, name, image, of_image in zip(grid, names, images, maps, strict=True):
        draw_image(row[0], image, name)
        for axes, title, values in zip(row[1:], titles, of_image, strict=True):
            _draw_map(axes, values, title)
        titles = [""] * scales
    return figure


def _draw_map(axes: Any, values: np.ndarray, title: str) -> None:
    lowest, highest = min(values.min(), 0.0), values.max() or 1.0
    image = axes.imshow(values, cmap="viridis", vmin=lowest, vmax=highest)
    axes.set_title(title, fontsize=9, pad=3)
    axes.set_axis_off()
    # Inside its own small axes, the bar takes nothing from the map, which stays as
    # large as the image.
    bar = axes.inset_axes((1.04, 0.0, 0.05, 1.0))
    axes.figure.colorbar(image, cax=bar)
    bar.locator_params(axis="y", nbins=4)
    bar.tick_params(labelsize=6, length=2, pad=2)
