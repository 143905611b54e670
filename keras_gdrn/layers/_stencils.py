"""Products with narrow kernels, which slide along an axis."""

import math

import keras
import numpy as np
from keras import ops

from keras_gdrn.kernels import Stencil

# A power of two; of fewer or more channels, a value takes up to half as long again.
_CHANNELS = 256


def slid(x, stencil: Stencil):
    """The stencil times lines along axis 1.

    Args:
        x: `(in front, size, behind, everything else)`.
    """
    if not (stencil.entering or stencil.leaving or stencil.outside):
        return _correlated(x, stencil.kernel, "same")
    if stencil.entering:
        x = _extended(x, stencil.entering, outside=0)
    beyond = stencil.radius - stencil.leaving
    if beyond < 0:
        x = x[:, -beyond:beyond]
    elif beyond:
        x = _extended(x, beyond, stencil.outside)
    return _correlated(x, stencil.kernel, "valid")


def _extended(x, beyond: int, outside: int):
    """With what lies beyond its ends (see `kernels.Stencil`)."""
    if not outside:
        return ops.pad(x, [[0, 0], [beyond] * 2, [0, 0], [0, 0]])
    first, last = ops.flip(x[:, :beyond], 1), ops.flip(x[:, -beyond:], 1)
    return ops.concatenate([outside * first, x, outside * last], axis=1)


def _wide(dtype: str) -> str:
    """In which terms are added up: in half precision the errors would add up too."""
    return keras.backend.result_type(dtype, "float32")


def _correlated(x, kernel: np.ndarray, padding: str):
    """Along axis 1, with zeros around it if the padding is "same"."""
    if keras.backend.backend() == "jax":
        # XLA makes one loop of them; its own convolutions of single channels are slow.
        if padding == "same":
            x = _extended(x, len(kernel) // 2, outside=0)
        count, wide = x.shape[1] - len(kernel) + 1, ops.cast(x, _wide(x.dtype))
        weights = kernel.astype(wide.dtype)
        y = sum(weight * wide[:, k : k + count] for k, weight in enumerate(weights))
        return ops.cast(y, x.dtype)
    front, size, behind, rest = ops.shape(x)
    channels = _channels(behind * rest)
    weights = ops.convert_to_tensor(kernel[:, None, None, None], x.dtype)
    weights = ops.broadcast_to(weights, (len(kernel), 1, channels, 1))
    x = ops.reshape(x, (front, size, -1, channels))
    return ops.depthwise_conv(x, weights, 1, padding, "channels_last")


def _channels(values):
    """In groups of how many values are convolved, so that their taps stay in cache."""
    if isinstance(values, int):
        divisor = math.gcd(values, _CHANNELS)
        return divisor if divisor >= _CHANNELS // 4 else values
    divisor = ops.minimum(ops.bitwise_and(values, -values), _CHANNELS)
    return ops.where(divisor >= _CHANNELS // 4, divisor, values)
