"""What torchvision and the inventors of cutout define, image by image, in float64."""

import colorsys

import numpy as np


def gray(image: np.ndarray) -> np.ndarray:
    """`(H, W)` luma of `(H, W, 3)`; an image of one channel as it is."""
    if image.shape[-1] == 1:
        return image[..., 0]
    red, green, blue = np.moveaxis(image, -1, 0)
    return 0.2989 * red + 0.587 * green + 0.114 * blue


def blend(image, other, factor):
    return np.clip(factor * image + (1 - factor) * other, 0, 1)


def brightness(image, factor):
    return blend(image, np.zeros_like(image), factor)


def contrast(image, factor):
    return blend(image, np.full_like(image, gray(image).mean()), factor)


def saturation(image, factor):
    return blend(image, gray(image)[..., None], factor)


def hue(image, shift):
    if image.shape[-1] == 1:
        return image
    turned = np.empty_like(image)
    for at in np.ndindex(image.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*image[at])
        turned[at] = colorsys.hsv_to_rgb((h + shift) % 1.0, s, v)
    return turned


STEPS = (brightness, contrast, saturation, hue)


def jitter(image, order, factors):
    for step in order:
        image = STEPS[step](image, factors[step])
    return image


def crop(image, corner, padding):
    padded = np.pad(image, [(padding, padding), (padding, padding), (0, 0)])
    row, column = corner
    return padded[row : row + image.shape[0], column : column + image.shape[1]]


def cutout(image, center, side):
    image = image.copy()
    row, column = (c - side // 2 for c in center)
    image[max(row, 0) : max(row + side, 0), max(column, 0) : max(column + side, 0)] = 0
    return image
