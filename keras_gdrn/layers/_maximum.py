import math

import keras
from keras import ops

from keras_gdrn.layers._precision import single_or_double


def maximum(x, axis: int | tuple[int, ...]):
    """The largest values along axes; NaN stays NaN, and the batch may be empty."""
    largest = _largest(x, axis)
    # XLA's maximum on a CPU loses NaN: a network that has diverged would go unnoticed.
    # By a mean, as LiteRT cannot quantize a tensor that is always zero.
    mean = ops.mean(ops.cast(x, single_or_double(x.dtype)), axis=axis)
    return ops.where(ops.isnan(mean), ops.cast(mean, x.dtype), largest)


def lowest(dtype) -> float:
    """About the lowest finite number, as `check_numerics` stops at infinite ones."""
    return -6.55e4 if keras.backend.standardize_dtype(dtype) == "float16" else -3.38e38


def _largest(x, axis):
    if keras.backend.backend() != "tensorflow":
        return ops.max(x, axis=axis, initial=-math.inf)  # also of an empty batch
    import tensorflow as tf

    # Without the initial value, at which `check_numerics` would stop.
    return tf.reduce_max(x, axis=axis)
