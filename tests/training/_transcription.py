"""What torchvision and the inventors of cutout define, image by image, in float64.

Blur is a sum over all offsets up to four standard deviations, as SciPy cuts it off. A
bent image has splines by their closed formula.
"""

import colorsys

import numpy as np


def gray(image: np.ndarray) -> np.ndarray:
    """`(H, W, 1)` luma of `(H, W, 3)`; an image of one channel as it is."""
    return image if image.shape[-1] == 1 else image @ [[0.2989], [0.587], [0.114]]


def blend(image, other, factor):
    return np.clip(factor * image + (1 - factor) * other, 0, 1)


def hue(image, shift):
    if image.shape[-1] == 1:
        return image
    turned = np.empty_like(image)
    for at in np.ndindex(image.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*image[at])
        turned[at] = colorsys.hsv_to_rgb((h + shift) % 1.0, s, v)
    return turned


JITTER = (
    lambda image, factor: blend(image, 0.0, factor),
    lambda image, factor: blend(image, gray(image).mean(), factor),
    lambda image, factor: blend(image, gray(image), factor),
    hue,
)


def crop(image, corner, padding):
    padded = np.pad(image, [(padding, padding), (padding, padding), (0, 0)])
    row, column = corner
    return padded[row : row + image.shape[0], column : column + image.shape[1]]


def spline(x):
    """The cubic B-spline about 0."""
    x = abs(x)
    return 2 / 3 - x**2 + x**3 / 2 if x < 1 else max(0, 2 - x) ** 3 / 6


def bent(image, coefficients, elastic):
    """Coefficients in [0, 1) of both axes, the second at the first pixel."""
    (height, width, _), (_, rows, columns) = image.shape, coefficients.shape
    reach = int(elastic) + 2
    around = np.pad(image, [(reach, reach), (reach, reach), (0, 0)], "symmetric")
    result = np.empty_like(image)
    for y, x in np.ndindex(height, width):
        at_row, at_column = (
            (rows - 3) * y / (height - 1),
            (columns - 3) * x / (width - 1),
        )
        moved = sum(
            spline(at_row - (i - 1))
            * spline(at_column - (j - 1))
            * (2 * coefficients[:, i, j] - 1)
            for i, j in np.ndindex(rows, columns)
        )
        point = np.array([y, x]) + elastic * moved + reach
        (i, j), (down, right) = np.floor(point).astype(int), point % 1
        above, below = around[i : i + 2, j : j + 2]
        above, below = ((1 - right) * row[0] + right * row[1] for row in (above, below))
        result[y, x] = (1 - down) * above + down * below
    return result


def blurred(image, sigma):
    reach = int(4 * sigma + 0.5)
    if not reach:
        return image
    offsets = range(-reach, reach + 1)
    weights = {d: np.exp(-0.5 * (d / sigma) ** 2) for d in offsets}
    around = np.pad(image, [(reach, reach), (reach, reach), (0, 0)], "symmetric")
    height, width = image.shape[:2]
    total = sum(
        weights[dy] * weights[dx] * around[reach + dy :, reach + dx :][:height, :width]
        for dy in offsets
        for dx in offsets
    )
    return total / sum(weights.values()) ** 2


def cutout(image, center, side):
    image = image.copy()
    row, column = (c - side // 2 for c in center)
    image[max(row, 0) : max(row + side, 0), max(column, 0) : max(column + side, 0)] = 0
    return image


def augmented(image, numbers, augmentation):
    """By numbers in [0, 1): corner, flip, jitter, center, blur, and the splines."""
    image = np.asarray(image, "float64")
    corner, (flip,), order, shares, center, (blur,), splines = np.split(
        numbers, (2, 3, 7, 11, 13, 14)
    )
    places = 2 * augmentation.padding + 1
    image = crop(image, np.floor(corner * places).astype(int), augmentation.padding)
    if flip < augmentation.flip:
        image = image[:, ::-1]
    if augmentation.elastic:
        image = bent(image, splines.reshape(2, 8, 8), augmentation.elastic)
    for step in np.argsort(order) if any(augmentation.jitter) else ():
        strength = augmentation.jitter[step]
        lowest, highest = max(0, 1 - strength), 1 + strength
        if step == 3:
            lowest, highest = -strength, strength
        image = JITTER[step](image, lowest + (highest - lowest) * shares[step])
    image, sizes = blurred(image, blur * augmentation.blur), image.shape[:2]
    return cutout(image, np.floor(center * sizes).astype(int), augmentation.cutout)
