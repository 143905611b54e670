"""The first layer of a trained network: the range and the objects of its images."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_gdrn._checks import check_choice, check_positive
from keras_gdrn._pixels import WHITE, value_ranges

EXTENSIONS = ("zero", "mirror")


@keras.saving.register_keras_serializable(package="keras_gdrn")
class Preprocess(keras.layers.Layer):
    """Rescales images with values of 0 to 255 or of 0 to 1 to values of 0 to 1.

    The values of an image decide, not its dtype. It is divided by 255 if it has whole
    numbers up to 255, or other values of which the largest is 8 or more. An image with
    only 0 and 1 counts as one of 0 to 1. An image of neither range, such as a
    standardized one, becomes NaN, and so do its scores.

    The layer also keeps what `classify` must know about the network: names of classes,
    size of objects, and what surrounds an image. They are saved with the network.

    Args:
        class_names: Names of the classes, in the order of the scores.
        object_size: Side, in pixels, of the objects for which the scale channel of
            `σ_0 = 1` was trained; `None` if it is not known.
        extension: What surrounds an image on its canvas, as `data.rescale`: `"zero"` or
            `"mirror"`.

    Input shape:
        `(batch, *spatial, channels)` of any dtype.

    Output shape:
        The same, float32.

    Raises:
        ValueError: If an argument is out of its range, or if images come in another
            shape than that of the model.

    Example:

    >>> layer = Preprocess(class_names=["cat", "dog"], object_size=32)
    >>> float(layer(np.full((1, 48, 48, 3), 255, "uint8"))[0, 0, 0, 0])
    1.0
    """

    def __init__(
        self,
        class_names: Sequence[str] = (),
        object_size: float | None = None,
        extension: str = "mirror",
        name: str = "preprocess",
        dtype="float32",
        **kwargs,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.class_names = _checked_names(class_names)
        if object_size is not None:
            object_size = check_positive("object_size", object_size)
        self.object_size = object_size
        self.extension = check_choice("extension", extension, EXTENSIONS)

    def build(self, input_shape):
        self._shape = tuple(input_shape)[1:]

    def call(self, inputs):
        x = ops.cast(self._checked(inputs), self.compute_dtype)
        axes = tuple(range(1, len(x.shape)))
        low = ops.min(x, axes, keepdims=True)
        high = ops.max(x, axes, keepdims=True)
        whole = ops.max(x - ops.floor(x), axes, keepdims=True) <= 0
        is_unit, is_byte = value_ranges(low, high, whole)
        # NaN for others. An exported `where` may become a sum, so no NaN goes into it.
        nan = ops.sqrt(ops.cast(is_unit | is_byte, x.dtype) - 1.0)
        return x / ops.where(is_unit, 1.0, ops.cast(WHITE, x.dtype)) + nan

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        config = super().get_config()
        config.update(
            class_names=list(self.class_names),
            object_size=self.object_size,
            extension=self.extension,
        )
        return config

    def _checked(self, images):
        """Images of the right shape; sizes that were unknown are known from here on."""
        own, shape = self._shape, tuple(images.shape)
        pairs = [*zip(shape[1:], own, strict=False)]
        if len(shape) != len(own) + 1 or any(
            None not in pair and pair[0] != pair[1] for pair in pairs
        ):
            raise ValueError(
                "The network takes batches of images, channels last, of the shape "
                f"(batch, {', '.join(map(str, own))}). `classify` takes photographs of "
                "any size and kind; `with_input_shape` makes the same network for "
                f"another size. Received: images of the shape {shape}"
            )
        if any(size is None and known is not None for size, known in pairs):
            import tensorflow as tf  # other backends know all sizes when they trace

            images = tf.ensure_shape(images, (None, *own))
        return images


def _checked_names(class_names) -> tuple[str, ...]:
    is_sequence = isinstance(class_names, (Sequence, np.ndarray))
    if (
        not is_sequence
        or isinstance(class_names, str)
        or not all(isinstance(name, str) for name in class_names)
    ):
        raise ValueError(
            "`class_names` must be a sequence of strings. "
            f"Received: class_names={class_names!r}"
        )
    return tuple(map(str, class_names))
