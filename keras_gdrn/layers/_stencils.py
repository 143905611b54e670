"""Products with narrow kernels, which slide along an axis."""

import math

import keras
import numpy as np
from keras import ops

from keras_gdrn.kernels import Stencil

# A convolution is fastest with so many channels, whose taps stay in the nearest cache;
# with a quarter of them it is worth the while to fetch more.
_GROUP = 256


def slid(x, axis: int, stencil: Stencil):
    """The stencil times lines along a spatial axis of `(batch, *spatial, channels)`."""
    *_, channels = shape = ops.shape(x)
    if 1 < axis == len(shape) - 2 and channels < _GROUP // 4:
        # Along the last axis only the channels lie behind one another.
        x = slid(ops.swapaxes(x, axis - 1, axis), axis - 1, stencil)
        return ops.swapaxes(x, axis - 1, axis)
    front, behind = shape[1:axis], shape[axis + 1 : -1]
    lines = (-1, shape[axis], math.prod(behind), channels)
    y = _slid(ops.reshape(x, lines), stencil)
    return ops.reshape(y, (-1, *front, ops.shape(y)[1], *behind, channels))


def _slid(x, stencil: Stencil):
    """Along axis 1 of `(in front, size, behind, channels)`."""
    if not (stencil.entering or stencil.leaving or stencil.mirrored):
        return _correlated(x, stencil.kernel, "same")
    beyond = stencil.radius + stencil.entering - stencil.leaving
    if beyond < 0:
        x = x[:, -beyond:beyond]
    elif beyond:
        x = _extended(x, beyond, stencil.mirrored)
    return _correlated(x, stencil.kernel)


def _extended(x, beyond: int, mirrored: bool):
    """With what lies beyond its ends."""
    edges = [[0, 0], [beyond] * 2, [0, 0], [0, 0]]
    return ops.pad(x, edges, "symmetric" if mirrored else "constant")


def _correlated(x, kernel: np.ndarray, padding: str = "valid"):
    """Along axis 1, with zeros around it if the padding is "same"."""
    if keras.backend.backend() == "jax":
        # XLA makes one loop of them; its own convolutions of single channels are slow.
        if padding == "same":
            x = _extended(x, len(kernel) // 2, mirrored=False)
        count, weights = x.shape[1] - len(kernel) + 1, kernel.astype(x.dtype)
        return sum(weight * x[:, k : k + count] for k, weight in enumerate(weights))
    front, size, behind, channels = ops.shape(x)
    # A number that is known: export to other formats needs it.
    known = isinstance(behind, int)
    group = channels * (_divisor(behind, _GROUP // channels) if known else 1)
    weights = ops.convert_to_tensor(kernel[:, None, None, None], x.dtype)
    weights = ops.broadcast_to(weights, (len(kernel), 1, group, 1))
    x = ops.reshape(x, (front, size, -1, group))
    y = ops.depthwise_conv(x, weights, 1, padding, "channels_last")
    return ops.reshape(y, (front, -1, behind, channels))


def _divisor(number: int, largest: int) -> int:
    return max(d for d in range(1, max(largest, 1) + 1) if number % d == 0)
