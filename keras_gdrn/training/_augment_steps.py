"""The steps of `augment` on batches in TensorFlow: each draws, then applies."""

import numpy as np
import tensorflow as tf

# ITU-R 601-2 luma, by which torchvision makes an image gray.
LUMA = (0.2989, 0.587, 0.114)

# The steps of color jitter, in the order of their factors.
BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)


def random_crop(images: tf.Tensor, padding: int, seed: tf.Tensor) -> tf.Tensor:
    shape = tf.stack([tf.shape(images)[0], 2])
    limit = 2 * padding + 1
    return crop(
        images, tf.random.stateless_uniform(shape, seed, 0, limit, "int32"), padding
    )


def crop(images: tf.Tensor, corners: tf.Tensor, padding: int) -> tf.Tensor:
    """Windows at `corners` `(N, 2)` of the images surrounded by zeros."""
    _, height, width, _ = tf.unstack(tf.shape(images))
    padded = tf.pad(images, [(0, 0), (padding, padding), (padding, padding), (0, 0)])
    rows = corners[:, :1] + tf.range(height)
    columns = corners[:, 1:] + tf.range(width)
    cropped = tf.gather(padded, rows, axis=1, batch_dims=1)
    cropped = tf.gather(cropped, columns, axis=2, batch_dims=1)
    return tf.ensure_shape(cropped, images.shape)


def random_flip(images: tf.Tensor, probability: float, seed: tf.Tensor) -> tf.Tensor:
    shape = tf.stack([tf.shape(images)[0], 1, 1, 1])
    chance = tf.random.stateless_uniform(shape, seed)
    return tf.where(chance < probability, images[:, :, ::-1], images)


def random_jitter(
    images: tf.Tensor, strengths: tuple[float, ...], seed: tf.Tensor
) -> tf.Tensor:
    shape = tf.stack([tf.shape(images)[0], 4])
    order_seed, factor_seed = tf.unstack(tf.random.split(seed, 2))
    order = tf.argsort(tf.random.stateless_uniform(shape, order_seed))
    lowest, highest = jitter_ranges(strengths)
    chance = tf.random.stateless_uniform(shape, factor_seed)
    return jitter(images, order, lowest + (highest - lowest) * chance)


def jitter_ranges(strengths: tuple[float, ...]) -> np.ndarray:
    """Lowest and highest factors, `(2, 4)`; for the hue, of its shift."""
    *factors, hue = strengths
    lowest = [*(max(0.0, 1.0 - strength) for strength in factors), -hue]
    highest = [*(1.0 + strength for strength in factors), hue]
    return np.array([lowest, highest], "float32")


def jitter(images: tf.Tensor, order: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """The four steps, by their `factors` `(N, 4)`, in the `order` `(N, 4)`."""
    for turn in range(4):  # at each turn, each image has a step of its own
        step = order[:, turn]
        images = _blend(images, step, factors)
        if images.shape[-1] == 3:
            images = _turn_hue(images, tf.where(step == HUE)[:, 0], factors[:, HUE])
    return images


def _blend(images: tf.Tensor, step: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """`factor * image + (1 - factor) * reference`, clipped; for the hue, nothing."""
    colored = images.shape[-1] == 3
    gray = tf.tensordot(images, LUMA, 1)[..., None] if colored else images
    mean = tf.reduce_mean(gray, axis=(1, 2), keepdims=True)
    factor = tf.gather(factors, step, batch_dims=1)
    factor = tf.where(step == HUE, 1.0, factor)[:, None, None, None]
    step = step[:, None, None, None]
    # The reference of the brightness is black.
    reference = mean * tf.cast(step == CONTRAST, "float32")
    reference += gray * tf.cast(step == SATURATION, "float32")
    return tf.clip_by_value(factor * images + (1.0 - factor) * reference, 0.0, 1.0)


def _turn_hue(images: tf.Tensor, which: tf.Tensor, shift: tf.Tensor) -> tf.Tensor:
    hue, *others = tf.unstack(tf.image.rgb_to_hsv(tf.gather(images, which)), axis=-1)
    hue = tf.math.floormod(hue + tf.gather(shift, which)[:, None, None], 1.0)
    turned = tf.image.hsv_to_rgb(tf.stack([hue, *others], axis=-1))
    return tf.tensor_scatter_nd_update(images, which[:, None], turned)


def random_cutout(images: tf.Tensor, side: int, seed: tf.Tensor) -> tf.Tensor:
    count, height, width, _ = tf.unstack(tf.shape(images))
    centers = tf.random.stateless_uniform((count, 2), seed)
    centers *= tf.cast(tf.stack([height, width]), "float32")
    return cutout(images, tf.cast(centers, "int32"), side)


def cutout(images: tf.Tensor, centers: tf.Tensor, side: int) -> tf.Tensor:
    """A square of zeros about each of the `centers` `(N, 2)`."""
    rows = _within(tf.shape(images)[1], centers[:, :1], side)
    columns = _within(tf.shape(images)[2], centers[:, 1:], side)
    return tf.where(rows[:, :, None, None] & columns[:, None, :, None], 0.0, images)


def _within(size: tf.Tensor, center: tf.Tensor, side: int) -> tf.Tensor:
    offset = tf.range(size) - (center - side // 2)
    return (offset >= 0) & (offset < side)
