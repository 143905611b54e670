"""The paper's augmentation, as torchvision and the inventors of cutout define it."""

import dataclasses
import functools
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from scipy.ndimage import gaussian_filter, map_coordinates

from keras_gdrn._checks import check_number
from keras_gdrn.data._separable import is_tensor
from keras_gdrn.data._source import generator
from keras_gdrn.training._sources import checked_images

COEFFICIENTS = 8  # of the splines of an elastic deformation, along each axis
NUMBERS = 14 + 2 * COEFFICIENTS**2  # random numbers of an image, whether used or not
CACHED = 2**18  # values changed at a time, so that they stay in the processor's cache

# ITU-R 601-2 luma, by which torchvision makes an image gray.
LUMA = np.array([0.2989, 0.587, 0.114], "float32")


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """Random changes of training images, applied in this order; zero turns one off.

    Args:
        padding: Pixels of zeros put around the image before a random window of its own
            size is cut out.
        flip: Probability of a horizontal flip.
        elastic: Largest displacement in pixels along each axis of a smooth deformation:
            cubic B-splines with 8 × 8 coefficients, uniform in `[-elastic, elastic]`.
            The image is interpolated linearly and mirrored at its border. With 2,
            digits of 20 pixels look like another handwriting.
        brightness, contrast, saturation: Color is multiplied, or moved away from the
            image's mean gray or from each pixel's gray, by a factor that is uniform
            in `[max(0, 1 - value), 1 + value]`.
        hue: The hue is rotated by a fraction of the circle, uniform in `[-hue, hue]`;
            at most 0.5. These four act in random order.
        blur: Largest standard deviation in pixels of a Gaussian blur, uniform in
            `[0, blur]`; the image is mirrored at its border. Reducing an
            image to a fraction f of its size blurs it by about √(1/f² - 1) / 2 pixels,
            0.87 at half.
        cutout: Side in pixels of a square of zeros around a random pixel of the image.

    Raises:
        ValueError: If a value is out of its range.
    """

    padding: int = 0
    flip: float = 0.0
    elastic: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    blur: float = 0.0
    cutout: int = 0

    def __post_init__(self):
        check_number("padding", self.padding, whole=True)
        check_number("flip", self.flip, highest=1)
        for name in ("elastic", "brightness", "contrast", "saturation", "blur"):
            check_number(name, getattr(self, name))
        check_number("hue", self.hue, highest=0.5)
        check_number("cutout", self.cutout, whole=True)

    @property
    def jitter(self) -> tuple[float, float, float, float]:
        """Brightness, contrast, saturation and hue."""
        return self.brightness, self.contrast, self.saturation, self.hue


def augment(images: Any, seed: Any, augmentation: Augmentation) -> Any:
    """Augment images at random, each independently.

    Flip, color jitter and crop after padding are those of torchvision: values are
    clipped to [0, 1] after each step of the jitter. Saturation and hue leave images of
    one channel as they are. No state is kept: the same seed gives the same result.

    Source: Perzanowski & Lindeberg, Sec. 5.2; for cutout DeVries and Taylor (2017),
    "Improved regularization of convolutional neural networks with cutout"; for the
    elastic deformation Simard et al. (2003), "Best practices for convolutional neural
    networks applied to visual document analysis", here by splines.

    Args:
        images: `(N, H, W, C)` or `(H, W, C)`, floats in [0, 1]: a NumPy array, or a
            TensorFlow tensor, inside `tf.data` or not. For color jitter, C is 1 or
            3. Without it, images may be standardized.
        seed: Random seed, two integers.
        augmentation: An `Augmentation`.

    Returns:
        Images of the same shape, as a float32 tensor or array.

    Raises:
        ValueError: If the images have another shape, are integers or have values far
            beyond 1 or, with color jitter, more than 0.3 outside [0, 1]. Wrong values
            of a tensor raise an `InvalidArgumentError`.

    Guarantee: for arrays and tensors, equals a transcription of each step to 1e-5,
    given the same random numbers.

    Example:

    >>> flipped_or_not = augment(images, (0, 1), Augmentation(flip=0.5))
    >>> flipped_or_not.shape
    (45, 64, 64, 3)
    """
    images = images if is_tensor(images) else np.asarray(images)
    if len(images.shape) == 3:
        return augment(images[None], seed, augmentation)[0]
    if len(images.shape) != 4:
        raise ValueError(
            "`images` must have shape (N, H, W, C) or (H, W, C). "
            f"Received: images.shape={images.shape}"
        )

    def change(images: np.ndarray, seed: Any) -> np.ndarray:
        images = checked_images(images, any(augmentation.jitter))
        first, second = map(int, seed)
        numbers = generator((first, second)).random((len(images), NUMBERS))
        return augmented(images, numbers, augmentation)

    if not is_tensor(images):
        return change(images, seed)
    import tensorflow as tf

    changed: Any = tf.numpy_function(change, [images, seed], "float32", stateful=False)
    changed.set_shape(images.shape)
    return changed


def augmented(images: np.ndarray, numbers: np.ndarray, augmentation: Any) -> np.ndarray:
    """An augmented copy of images `(N, H, W, C)`, float32, by numbers `(N, NUMBERS)`.

    Each step takes a few images at once: few enough for the processor's cache, but not
    one by one, as Python's overhead for each would hold up all threads.
    """
    changed = np.array(images, "float32")
    at_a_time = max(1, CACHED // max(1, changed[:1].size))
    for start in range(0, len(changed), at_a_time):
        few = slice(start, start + at_a_time)
        _change(changed[few], numbers[few], augmentation)
    return changed


def _change(images: np.ndarray, numbers: np.ndarray, augmentation: Any) -> None:
    """Augments images in place."""
    padding, side = augmentation.padding, augmentation.cutout
    parts = np.split(numbers, (2, 3, 7, 11, 13, 14), 1)
    corner, flip, order, jitter, center, blur, coefficients = parts
    height, width = images.shape[1:3]
    if padding:
        sides, corners = (padding, padding), corner * (2 * padding + 1)
        around = np.pad(images, ((0, 0), sides, sides, (0, 0)))
        for number, (y, x) in enumerate(corners.astype(int)):
            images[number] = around[number, y : y + height, x : x + width]
    flipped = flip[:, 0] < augmentation.flip
    images[flipped] = images[flipped, :, ::-1]
    if augmentation.elastic:
        bend(images, coefficients, augmentation.elastic)
    if any(augmentation.jitter):
        factors = jitter_factors(jitter, augmentation.jitter)
        for steps in np.argsort(order).T:  # the first step of each image, the second, …
            for step in range(4):
                chosen = steps == step
                changed = jittered(images[chosen], step, factors[chosen, step])
                images[chosen] = changed
    if augmentation.blur:
        for image, sigma in zip(images, augmentation.blur * blur[:, 0], strict=True):
            gaussian_filter(image, (sigma, sigma, 0), output=image, mode="reflect")
    if side:
        first = (center * (height, width)).astype(int) - side // 2
        for image, corner in zip(images, first, strict=True):
            (top, left), (bottom, right) = np.maximum((corner, corner + side), 0)
            image[top:bottom, left:right] = 0.0


def bend(images: np.ndarray, coefficients: np.ndarray, elastic: float) -> None:
    """Deforms images in place, by two splines each, of coefficients in [0, 1)."""
    rows, columns = (spline_basis(length) for length in images.shape[1:3])
    coefficients = elastic * (
        2.0 * coefficients.reshape(-1, 2, COEFFICIENTS, COEFFICIENTS) - 1.0
    )
    seen = np.indices(images.shape[1:3]) + rows @ coefficients @ columns.T
    for image, points in zip(images, seen, strict=True):
        for channel in np.moveaxis(image, -1, 0):
            channel[:] = map_coordinates(channel, points, order=1, mode="reflect")


@functools.lru_cache(8)
def spline_basis(length: int) -> np.ndarray:
    """Cubic B-splines at each pixel, `(length, COEFFICIENTS)`, whose sum is 1."""
    pixels = np.linspace(0, COEFFICIENTS - 3, length)
    return BSpline.design_matrix(pixels, np.arange(-3, COEFFICIENTS + 1), 3).toarray()


def jitter_factors(numbers: np.ndarray, limits: tuple[float, ...]) -> np.ndarray:
    """The factors of the jitter's first three steps, and the shift of the hue."""
    *colors, hue = limits
    lowest = np.array([*(max(0.0, 1.0 - color) for color in colors), -hue])
    highest = np.array([*(1.0 + color for color in colors), hue])
    return (lowest + (highest - lowest) * numbers).astype("float32")


def jittered(images: np.ndarray, step: int, factors: np.ndarray) -> np.ndarray:
    """Changes brightness, contrast, saturation or hue of copies, by a factor each."""
    has_color = images.shape[-1] == 3
    if step >= 2 and not has_color:
        return images
    if step == 3:
        return rotated_hue(images, factors[:, None, None])
    factors = factors[:, None, None, None]
    rest = np.float32(0.0)
    if step:
        other = (images @ LUMA)[..., None] if has_color else images
        if step == 1:
            other = np.mean(other, axis=(1, 2, 3), keepdims=True)
        rest = (np.float32(1.0) - factors) * other
    images *= factors
    images += rest
    return np.clip(images, 0.0, 1.0, out=images)


def rotated_hue(images: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Rotates the hue by a fraction of the circle, at the same value and chroma."""
    red, green, blue = np.ascontiguousarray(np.moveaxis(images, -1, 0))
    value = np.maximum(np.maximum(red, green), blue)
    chroma = value - np.minimum(np.minimum(red, green), blue)
    unit = np.float32(1.0) / np.where(chroma > 0, chroma, np.float32(1.0))
    hue = 4 + (red - green) * unit  # in sixths of the circle
    hue = np.where(value == green, 2 + (blue - red) * unit, hue)
    hue = np.where(value == red, (green - blue) * unit, hue)
    turns, turned = hue / np.float32(6.0) + shifts, np.empty_like(images)
    for channel in range(3):
        distance = turns - np.float32(channel / 3)
        distance -= np.rint(distance)
        share = 6 * np.abs(distance) - 1
        np.clip(share, 0.0, 1.0, out=share)
        turned[..., channel] = value - chroma * share
    return turned
