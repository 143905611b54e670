import math

import keras
from keras import ops


def maximum(x, axis: int | tuple[int, ...]):
    """The largest values along axes: NaN where there is one; none of an empty batch."""
    largest = _largest(x, axis)
    # XLA's maximum on a CPU loses NaN: a network that has diverged would go unnoticed.
    lost = ops.where(ops.isnan(x), x, ops.zeros_like(x))
    return largest + ops.sum(lost, axis=axis)


def lowest(dtype) -> float:
    """Finite, with nothing below it: `check_numerics` stops at infinite numbers."""
    return -6.55e4 if keras.backend.standardize_dtype(dtype) == "float16" else -3.38e38


def _largest(x, axis):
    if keras.backend.backend() != "tensorflow":
        return ops.max(x, axis=axis, initial=-math.inf)  # also of an empty batch
    import tensorflow as tf

    # Without the initial value, at which `check_numerics` would stop.
    return tf.reduce_max(x, axis=axis)
