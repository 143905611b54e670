"""What is written once for NumPy arrays and for TensorFlow's tensors.

TensorFlow need not be installed; where there are tensors, it is.
"""

import importlib
from typing import Any

import numpy as np

from keras_gdrn.data._separable import is_tensor


def has_tensorflow() -> bool:
    """Whether TensorFlow can be imported: batches are made by `tf.data` then."""
    try:
        importlib.import_module("tensorflow")
    except ImportError:
        return False
    return True


def namespace(array: Any) -> Any:
    """`numpy`; for a tensor, in a graph or not, TensorFlow's functions of its names.

    Here and in its operators TensorFlow converts no types, but for Python's numbers.
    """
    if not is_tensor(array):
        return np
    import tensorflow as tf

    return tf.experimental.numpy


def numpy_dtype(array: Any) -> np.dtype:
    """The type of an array, of a tensor or of the specification of one."""
    return np.dtype(getattr(array.dtype, "as_numpy_dtype", array.dtype))


def has_numbers(array: Any) -> bool:
    """Whether the values are real numbers or booleans."""
    return numpy_dtype(array).kind in "biufV"  # NumPy has no kind for bfloat16


def shape_of(array: Any) -> list[Any]:
    """The sizes of the axes; scalar tensors, where a graph does not know them."""
    sizes = list(array.shape)
    if None not in sizes:
        return sizes
    import tensorflow as tf

    scalars: Any = tf.unstack(tf.shape(array), len(sizes))
    return [n if size is None else size for size, n in zip(sizes, scalars, strict=True)]


def indices(array: Any, axis: int) -> Any:
    """0, 1, … along an axis, int32."""
    return numbers_below(shape_of(array)[axis])


def numbers_below(size: Any) -> Any:
    """0, 1, … `size - 1`, int32; a tensor, where the size is one."""
    if not is_tensor(size):
        return np.arange(size, dtype="int32")
    import tensorflow as tf

    return tf.range(size)


def shaped_as(images: Any, changed: Any) -> Any:
    """What images were changed to, of their shape, which a graph may have lost."""
    if is_tensor(changed):
        changed.set_shape(images.shape)
    return changed


def data_errors() -> tuple[type[Exception], ...]:
    """The errors of `required`."""
    if not has_tensorflow():
        return (ValueError,)
    import tensorflow as tf

    return ValueError, tf.errors.InvalidArgumentError


def required(array: Any, fits: Any, message: str, received: Any) -> Any:
    """The array as it is, or an error that tells what was received, unless it fits.

    Raises:
        ValueError: At once, if the values are known.
        tf.errors.InvalidArgumentError: In a pipeline.
    """
    if is_tensor(array):
        import tensorflow as tf

        if tf.is_symbolic_tensor(array):
            assertion: Any = tf.debugging.Assert(fits, [message, received])
            with tf.control_dependencies([assertion]):
                return tf.identity(array)
    if not fits:
        raise ValueError(f"{message} {np.asarray(received)}")
    return array
