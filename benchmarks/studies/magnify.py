"""Images magnified exactly: as the sum of cosines that passes through their pixels.

Such an image is known at every point of the plane, has no details finer than its
pixels, and continues as its mirror image.
"""

from math import ceil

import numpy as np


def at_points(images, points, blur: float = 0.0) -> np.ndarray:
    """The images between their pixels, by the cosine series along each axis."""
    size = images.shape[1]
    waves = np.pi * np.arange(size) / size
    analysis = np.cos(np.outer(waves, np.arange(size) + 0.5)) * (2 / size)
    analysis[0] /= 2
    blurred = np.exp(-0.5 * (waves * blur) ** 2)
    rows = np.cos(np.outer(points + 0.5, waves)) * blurred @ analysis
    resampled = np.einsum("yh,nhwc,xw->nyxc", rows, images, rows, optimize=True)
    return resampled.astype("float32")


def magnified(images, factor: float, odd: bool = True, blur: float = 0.0) -> np.ndarray:
    """Magnified about the center: a pixel if `odd`, else a point between four."""
    size = images.shape[1]
    pixels = 2 * round((factor * (size - odd) - odd) / 2) + odd
    points = (np.arange(pixels) - (pixels - 1) / 2) / factor + (size - 1) / 2
    return at_points(images, points, blur)


def magnified_as_imresize(images, factor: float) -> np.ndarray:
    """Magnified exactly, at the points for which `imresize` interpolates."""
    pixels = np.arange(ceil(factor * images.shape[1]))
    return at_points(images, (pixels + 0.5) / factor - 0.5)
