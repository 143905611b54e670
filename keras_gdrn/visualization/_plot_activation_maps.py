"""The figure of activation maps beside their images."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_gdrn.visualization._figures import draw_image, new_figure, size_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIDE = 1.4  # inches
_BAR = 0.4  # with its numbers


def plot_activation_maps(
    images: np.ndarray,
    maps: np.ndarray,
    sigma0: Sequence[float] = (0.5, 1.0, 2.0),
    *,
    names: Sequence[str] | None = None,
) -> "Figure":
    """Images, each beside its activation maps: a row for each image.

    Every map has colors of its own, from zero to its maximum, with a color bar.

    Source: Perzanowski & Lindeberg, Fig. activation-maps-stl10.

    Args:
        images: `(image, height, width, channel)` with values in [0, 1].
        maps: `(image, scale, height, width)`, as `activation_maps` returns them.
        sigma0: Initial scales of the maps, which are their titles.
        names: For each image a title, such as its class.

    Returns:
        A figure.

    Raises:
        ValueError: If there are no images, or not a map for each image and scale.
        ImportError: If matplotlib is not installed.
    """
    images, maps = np.asarray(images), np.asarray(maps)
    names = [""] * len(images) if names is None else names
    _check_shapes(images, maps, sigma0, names)
    rows, scales = maps.shape[:2]
    size = (_SIDE + scales * (_SIDE + _BAR), rows * (_SIDE + 0.2))
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


def _check_shapes(images, maps, sigma0, names) -> None:
    expected = (len(images), len(sigma0), *images.shape[1:3])
    if not len(images) or maps.shape != expected or len(names) != len(images):
        raise ValueError(
            "`maps` must hold a map for each image and each of `sigma0`, and `names` a "
            f"title for each image; at least one. Received: images {images.shape}, "
            f"maps {maps.shape}, {len(sigma0)} scales, {len(names)} names"
        )
