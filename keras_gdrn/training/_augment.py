"""The paper's augmentation, as torchvision and the inventors of cutout define it."""

import dataclasses
from typing import Any

import numpy as np

from keras_gdrn._checks import check_number
from keras_gdrn.data._separable import is_tensor
from keras_gdrn.data._source import generator
from keras_gdrn.training._augment_steps import augmented, draw
from keras_gdrn.training._sources import check_image_type, checked_images


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """What `augment` does to each image, in this order; zero stands for nothing.

    Args:
        padding: Pixels of zeros put around the image before a window of its own size
            is cut out at random.
        flip: Probability of exchanging left and right.
        brightness, contrast, saturation: Color is multiplied, or moved away from the
            image's mean gray or from each pixel's gray, by a factor that is uniform
            in `[max(0, 1 - value), 1 + value]`.
        hue: The hue is turned by a share of the circle, uniform in `[-hue, hue]`; at
            most 0.5. These four act in random order.
        cutout: Side in pixels of a square that is set to zero. Its center is any
            pixel of the image, so that a part of it may lie outside.

    Raises:
        ValueError: If a value is out of its range.
    """

    padding: int = 0
    flip: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    cutout: int = 0

    def __post_init__(self):
        check_number("padding", self.padding, whole=True)
        check_number("flip", self.flip, highest=1)
        check_number("brightness", self.brightness)
        check_number("contrast", self.contrast)
        check_number("saturation", self.saturation)
        check_number("hue", self.hue, highest=0.5)
        check_number("cutout", self.cutout, whole=True)

    @property
    def jitter(self) -> tuple[float, float, float, float]:
        """Brightness, contrast, saturation and hue."""
        return self.brightness, self.contrast, self.saturation, self.hue


def augment(images: Any, seed: Any, augmentation: Augmentation) -> Any:
    """Change images at random, each in its own way.

    Flip, color jitter and crop after padding are those of torchvision, where
    brightness multiplies, contrast turns about the mean gray of the image, and values
    are clipped to [0, 1] after each step of the jitter. Saturation and hue leave
    images of one channel as they are. No state is kept: the same seed has the same
    result, whatever was computed before and in whatever order. NumPy computes it: an
    array, for which TensorFlow need not be installed, and a tensor are changed in the
    same way.

    Source: Perzanowski & Lindeberg, Sec. 5.2; for cutout DeVries and Taylor (2017),
    "Improved regularization of convolutional neural networks with cutout".

    Args:
        images: `(N, H, W, C)` or `(H, W, C)`, floats in [0, 1]: a NumPy array, or a
            TensorFlow tensor, inside `tf.data` or not. For color jitter, C is 1 or
            3. Standardized images, which the jitter would clip, can be cropped, flipped
            and cut out.
        seed: Two integers.
        augmentation: An `Augmentation`.

    Returns:
        Images of the same shape, as a float32 tensor or array.

    Raises:
        ValueError: If the images have another shape, are of integers or have values
            far beyond 1 or, with color jitter, more than 0.3 outside [0, 1]; in a
            pipeline, an error of the values is an `InvalidArgumentError`.

    Guarantee: equals a transcription of each step to 1e-5, given the same random
    numbers; an array and a tensor have the same result.

    Example:

    >>> flipped_or_not = augment(images, (0, 1), Augmentation(flip=0.5))
    >>> flipped_or_not.shape
    (45, 64, 64, 3)
    """
    images = images if is_tensor(images) else np.asarray(images)
    check_shape(images, any(augmentation.jitter))
    check_image_type(images)
    if len(images.shape) == 3:
        return augment(images[None], seed, augmentation)[0]

    def change(images: np.ndarray, seed: Any) -> np.ndarray:
        images = checked_images(images, any(augmentation.jitter))
        first, second = map(int, seed)
        drawn = draw(generator((first, second)), images.shape, augmentation)
        return augmented(images, drawn, augmentation)

    if not is_tensor(images):
        return change(images, seed)
    import tensorflow as tf

    if tf.executing_eagerly():
        return tf.constant(change(images.numpy(), seed))
    changed: Any = tf.numpy_function(change, [images, seed], "float32", stateful=False)
    changed.set_shape(images.shape)
    return changed


def check_shape(images: Any, jitter: bool) -> None:
    """Raises an error unless images have a shape that can be augmented."""
    shape = images.shape
    has_rank = getattr(shape, "rank", len) is not None  # a tensor may tell nothing
    fits = has_rank and len(shape) in (3, 4)
    if not fits or (jitter and shape[-1] not in (1, 3)):
        raise ValueError(
            "`images` must have shape (N, H, W, C) or (H, W, C), for color jitter with "
            f"1 or 3 channels. Received: images.shape={shape}"
        )
