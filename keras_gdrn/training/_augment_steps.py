"""The steps of `augment` on NumPy arrays, and the random numbers that they take."""

from typing import Any, NamedTuple

import numpy as np

# ITU-R 601-2 luma, by which torchvision makes an image gray.
LUMA = np.array([0.2989, 0.587, 0.114], "float32")


class Draws(NamedTuple):
    """What is drawn for each of N images, whether it is used or not.

    Attributes:
        corners: `(N, 2)` integers, of the window in the padded image.
        flipped: `(N,)` bool.
        order: `(N, 4)` integers, the steps of the jitter.
        factors: `(N, 4)` float32, of each step, for the hue its shift.
        centers: `(N, 2)` integers, of the cutout.
    """

    corners: np.ndarray
    flipped: np.ndarray
    order: np.ndarray
    factors: np.ndarray
    centers: np.ndarray


def draw(random: np.random.Generator, shape: Any, augmentation: Any) -> Draws:
    """The numbers for images of a shape `(N, H, W, C)`: each image has its own."""
    count, height, width, _ = shape
    chances = random.random((count, 13))
    corner, flip, order, factor, center = np.split(chances, (2, 3, 7, 11), axis=1)
    *factors, hue = augmentation.jitter
    lowest = np.array([*(max(0.0, 1.0 - strength) for strength in factors), -hue])
    highest = np.array([*(1.0 + strength for strength in factors), hue])
    return Draws(
        (corner * (2 * augmentation.padding + 1)).astype("int32"),
        flip[:, 0] < augmentation.flip,
        np.argsort(order),
        (lowest + (highest - lowest) * factor).astype("float32"),
        (center * (height, width)).astype("int32"),
    )


def augmented(images: Any, drawn: Draws, augmentation: Any) -> np.ndarray:
    """A changed copy of images `(N, H, W, C)`, float32."""
    images = np.array(images, "float32")
    if augmentation.padding:
        images = crop(images, drawn.corners, augmentation.padding)
    flipped = drawn.flipped
    images[flipped] = images[flipped, :, ::-1]
    if any(augmentation.jitter):
        for image, order, factors in zip(
            images, drawn.order, drawn.factors, strict=True
        ):
            jitter(image, order, factors)
    if augmentation.cutout:
        for image, center in zip(images, drawn.centers, strict=True):
            cutout(image, center, augmentation.cutout)
    return images


def crop(images: np.ndarray, corners: np.ndarray, padding: int) -> np.ndarray:
    """Windows at `corners` `(N, 2)` of the images surrounded by zeros."""
    cropped, sides = np.empty_like(images), (padding, padding)
    padded = np.pad(images, ((0, 0), sides, sides, (0, 0)))
    for image, window, (y, x) in zip(padded, cropped, corners, strict=True):
        window[:] = image[y:, x:][: window.shape[0], : window.shape[1]]
    return cropped


def jitter(image: np.ndarray, order: np.ndarray, factors: np.ndarray) -> None:
    """The four steps on one image, in place, each by its factor, in this order."""
    steps = (_brightness, _contrast, _saturation, turn_hue)
    for number in order:
        if number < 2 or image.shape[-1] == 3:  # there is color to change
            steps[number](image, factors[number])


def _brightness(image: np.ndarray, factor: np.float32) -> None:
    image *= factor
    _clip(image)


def _contrast(image: np.ndarray, factor: np.float32) -> None:
    mean = np.mean(_gray(image))
    image *= factor
    image += (np.float32(1.0) - factor) * mean
    _clip(image)


def _saturation(image: np.ndarray, factor: np.float32) -> None:
    gray = _gray(image) * (np.float32(1.0) - factor)
    image *= factor
    image += gray
    _clip(image)


def _gray(image: np.ndarray) -> np.ndarray:
    return image if image.shape[-1] == 1 else (image @ LUMA)[..., None]


def _clip(image: np.ndarray) -> None:
    np.maximum(image, np.float32(0.0), out=image)
    np.minimum(image, np.float32(1.0), out=image)


def turn_hue(image: np.ndarray, shift: np.float32) -> None:
    """The hue turned by a share of the circle, at the same value and chroma."""
    red, green, blue = np.ascontiguousarray(np.moveaxis(image, -1, 0))
    value = np.maximum(np.maximum(red, green), blue)
    chroma = value - np.minimum(np.minimum(red, green), blue)
    unit = np.float32(1.0) / np.where(chroma > 0, chroma, np.float32(1.0))
    hue = 4 + (red - green) * unit  # in sixths of the circle
    hue = np.where(value == green, 2 + (blue - red) * unit, hue)
    hue = np.where(value == red, (green - blue) * unit, hue)
    turns = hue / np.float32(6.0) + shift
    for channel in range(3):
        distance = turns - np.float32(channel / 3)
        distance -= np.rint(distance)
        share = 6 * np.abs(distance) - 1
        _clip(share)
        image[..., channel] = value - chroma * share


def cutout(image: np.ndarray, center: np.ndarray, side: int) -> None:
    """A square of zeros about the center, in place."""
    (top, left), (bottom, right) = (
        np.maximum(center - side // 2 + end, 0) for end in (0, side)
    )
    image[top:bottom, left:right] = 0.0
