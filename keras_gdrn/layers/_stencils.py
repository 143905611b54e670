"""Products with narrow kernels, which slide along an axis."""

import keras
import numpy as np
from keras import ops

from keras_gdrn.kernels import Stencil


def slid(x, stencil: Stencil):
    """The stencil times lines along axis 1.

    Args:
        x: `(in front, size, behind, everything else)`.
    """
    if stencil.entering:
        x = _extended(x, stencil.entering, outside=0)
    beyond = stencil.radius - stencil.leaving
    if beyond < 0:
        x = x[:, -beyond:beyond]
    elif beyond:
        x = _extended(x, beyond, stencil.outside)
    return _correlated(x, stencil.kernel)


def _extended(x, beyond: int, outside: int):
    """With what lies beyond its ends (see `kernels.Stencil`)."""
    if not outside:
        return ops.pad(x, [[0, 0], [beyond] * 2, [0, 0], [0, 0]])
    first, last = ops.flip(x[:, :beyond], 1), ops.flip(x[:, -beyond:], 1)
    return ops.concatenate([outside * first, x, outside * last], axis=1)


def _wide(dtype: str) -> str:
    """In which terms are added up: in half precision the errors would add up too."""
    return keras.backend.result_type(dtype, "float32")


def _correlated(x, kernel: np.ndarray):
    if keras.backend.backend() == "jax":
        # XLA makes one loop of them; its own convolutions of single channels are slow.
        count, wide = x.shape[1] - len(kernel) + 1, ops.cast(x, _wide(x.dtype))
        weights = kernel.astype(wide.dtype)
        y = sum(weight * wide[:, k : k + count] for k, weight in enumerate(weights))
        return ops.cast(y, x.dtype)
    weights = ops.convert_to_tensor(kernel[:, None, None, None], x.dtype)
    weights = ops.broadcast_to(weights, (len(kernel), 1, ops.shape(x)[-1], 1))
    return ops.depthwise_conv(x, weights, data_format="channels_last")
