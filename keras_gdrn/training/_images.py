"""Which images are fit for training."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

# Digits of scikit-learn reach 16, images of 8 bits 255. Standardized images stay
# below this, even where one pixel in 200 is ink.
LARGEST = 15.0

_WANTED = (
    "Images must be floats in [0, 1], or standardized: divide images of 8 bits by 255 "
    "(`images.astype('float32') / 255`). Received: "
)


def check_image_type(dtype: Any) -> None:
    """Raises an error if images are of an integer type.

    Args:
        dtype: of TensorFlow or NumPy.
    """
    import tensorflow as tf

    if tf.as_dtype(dtype).is_integer:
        raise ValueError(f"{_WANTED}images of type {tf.as_dtype(dtype).name}")


def checked_images(images: "tf.Tensor") -> "tf.Tensor":
    """The images as they are, or an error if they are of integers or far beyond 1.

    Raises:
        ValueError: for integers, and for values that are known at once.
        tf.errors.InvalidArgumentError: for the values, in a pipeline.
    """
    import tensorflow as tf

    check_image_type(images.dtype)
    if images.dtype == "bool":
        return images
    largest = tf.reduce_max(tf.abs(images))
    if tf.executing_eagerly():
        if tf.size(images) and not largest <= LARGEST:
            raise ValueError(f"{_WANTED}values up to {float(largest):g}")
        return images
    fits = tf.debugging.Assert(
        (tf.size(images) == 0) | (largest <= tf.cast(LARGEST, images.dtype)),
        [f"{_WANTED}values up to", largest],
    )
    with tf.control_dependencies([fits]):
        return tf.identity(images)
