"""The steps of `augment` on batches, arrays or tensors, by given random numbers."""

from typing import Any

import numpy as np

from keras_gdrn.training._tensors import indices, namespace, shape_of, shaped_as

# ITU-R 601-2 luma, by which torchvision makes an image gray.
LUMA = np.array([0.2989, 0.587, 0.114], "float32")

# The steps of color jitter, in the order of their factors.
BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)


def crop(images: Any, corners: Any, padding: int) -> Any:
    """Windows at `corners` `(N, 2)` of the images surrounded by zeros."""
    xp = namespace(images)
    _, height, width, channels = shape_of(images)
    edges = (padding, padding)
    padded = xp.pad(images, ((0, 0), edges, edges, (0, 0)), "constant")
    number = indices(images, 0)[:, None]
    rows = number * (height + 2 * padding) + corners[:, :1] + indices(images, 1)
    columns = corners[:, 1:] + indices(images, 2)
    pixels = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    cropped = xp.take(xp.reshape(padded, (-1, channels)), pixels, axis=0)
    return shaped_as(images, cropped)


def flip(images: Any, flipped: Any) -> Any:
    """Left and right exchanged, where `flipped` `(N,)`."""
    where = namespace(images).where
    turned = where(flipped[:, None, None, None], images[:, :, ::-1], images)
    return shaped_as(images, turned)


def jitter(images: Any, order: Any, factors: Any) -> Any:
    """The four steps, by their `factors` `(N, 4)`, in the `order` `(N, 4)`."""
    xp = namespace(images)
    for turn in range(4):  # at each turn, each image has a step of its own
        step = order[:, turn : turn + 1]
        factor = xp.take_along_axis(factors, step, axis=1)
        images = _blend(images, step[:, :, None, None], factor[:, :, None, None])
        if images.shape[-1] == 3:
            images = _turn_hue(images, step[:, 0] == HUE, factor[:, 0])
    return images


def _blend(images: Any, step: Any, factor: Any) -> Any:
    """`factor * image + (1 - factor) * reference`, clipped; for the hue, nothing."""
    xp = namespace(images)
    colored = images.shape[-1] == 3
    gray = xp.tensordot(images, LUMA, 1)[..., None] if colored else images
    mean = xp.mean(gray, axis=(1, 2), keepdims=True)
    factor = xp.where(step == HUE, xp.ones_like(factor), factor)
    # The reference of the brightness is black.
    reference = xp.where(step == SATURATION, gray, xp.zeros_like(mean))
    reference = xp.where(step == CONTRAST, mean, reference)
    blended = factor * images + (1.0 - factor) * reference
    return shaped_as(images, xp.clip(blended, 0.0, 1.0))


def _turn_hue(images: Any, which: Any, shift: Any) -> Any:
    """The hue of those images `which` `(N,)` turned by their `shift` `(N,)`."""
    xp = namespace(images)
    (places,) = xp.nonzero(which)
    turned = turn_hue(xp.take(images, places, axis=0), xp.take(shift, places))
    behind = shape_of(images)[0] - 1 + xp.cumsum(which, dtype="int32")
    sources = xp.where(which, behind, indices(images, 0))
    joined = xp.concatenate([images, turned], axis=0)
    return shaped_as(images, xp.take(joined, sources, axis=0))


def turn_hue(images: Any, shift: Any) -> Any:
    """The hue turned by `shift` `(N,)` of the circle, at the same value and chroma."""
    xp = namespace(images)
    red, green, blue = (images[..., channel] for channel in range(3))
    value = xp.maximum(xp.maximum(red, green), blue)
    chroma = value - xp.minimum(xp.minimum(red, green), blue)
    unit = 1.0 / xp.where(chroma > 0, chroma, xp.ones_like(chroma))
    hue = 4.0 + (red - green) * unit  # in sixths of the circle
    hue = xp.where(value == green, 2.0 + (blue - red) * unit, hue)
    hue = xp.where(value == red, (green - blue) * unit, hue)
    hue = hue + 6.0 * shift[:, None, None]
    channels = []
    for own in (0.0, 2.0, 4.0):
        turns = (hue - own) / 6.0
        distance = 6.0 * xp.abs(turns - xp.floor(turns + 0.5))
        channels.append(value - chroma * xp.clip(distance - 1.0, 0.0, 1.0))
    return xp.stack(channels, axis=-1)


def cutout(images: Any, centers: Any, side: int) -> Any:
    """A square of zeros about each of the `centers` `(N, 2)`."""
    xp = namespace(images)
    rows = _within(indices(images, 1), centers[:, :1], side)
    columns = _within(indices(images, 2), centers[:, 1:], side)
    erased = rows[:, :, None, None] & columns[:, None, :, None]
    return shaped_as(images, xp.where(erased, xp.zeros_like(images), images))


def _within(index: Any, center: Any, side: int) -> Any:
    offset = index - (center - side // 2)
    return (offset >= 0) & (offset < side)
