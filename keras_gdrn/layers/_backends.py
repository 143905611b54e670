"""Ways around differences of backends and processors."""

import math

import keras
from keras import ops


def single_or_double(dtype) -> str:
    """Double precision for a double precision dtype, else single.

    `keras.backend.result_type` ignores JAX' float64, unless an environment variable
    enables it.
    """
    double = keras.backend.standardize_dtype(dtype) == "float64"
    return "float64" if double else "float32"


def unfused(x):
    """Returns `x`, by an operation that TensorFlow does not fuse with the next ReLU.

    On a CPU, oneDNN's normalization with ReLU and product with bias and ReLU turn NaN
    into 0, so that a diverged network would go on with a finite loss. This operation
    checks the known part of the shape, copies nothing, and stays in exported graphs.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    import tensorflow as tf

    return tf.ensure_shape(x, x.shape)


def maximum(x, axis: int | tuple[int, ...]):
    """The largest values along axes; NaN stays NaN, and the batch may be empty."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # Without an initial value, at which `check_numerics` would stop.
        largest = tf.reduce_max(x, axis=axis)
    else:
        largest = ops.max(x, axis=axis, initial=-math.inf)  # also of an empty batch
    # XLA's maximum on a CPU loses NaN: a network that has diverged would go unnoticed.
    # A mean of the values has it. (LiteRT could not quantize zeros with NaN.)
    values = ops.stop_gradient(ops.cast(x, single_or_double(x.dtype)))
    mean = ops.mean(values, axis=axis)
    return ops.where(ops.isnan(mean), ops.cast(mean, x.dtype), largest)


def lowest(dtype) -> float:
    """About the lowest finite number, as `check_numerics` stops at infinite ones."""
    return -6.55e4 if keras.backend.standardize_dtype(dtype) == "float16" else -3.38e38
