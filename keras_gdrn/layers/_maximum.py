import math

from keras import ops


def maximum(x, axis: int | tuple[int, ...]):
    """The largest values along axes: NaN where there is one; none of an empty batch."""
    largest = ops.max(x, axis=axis, initial=-math.inf)
    # XLA's maximum on a CPU loses NaN: a network that has diverged would go unnoticed.
    lost = ops.where(ops.isnan(x), x, ops.zeros_like(x))
    return largest + ops.sum(lost, axis=axis)
