"""A residual block, on the pixels or on grids."""

from collections.abc import Callable

from keras import ops

from keras_gdrn.layers._backends import unfused
from keras_gdrn.layers._batch_normalization import fuses, normalized_jointly


def residual(block, maps, skip, convolved: Callable, training: bool | None) -> list:
    """`M(x) = φ(skip(x) + BN(w_2 * φ(BN(w_1 * x))))`.

    `skip` are the inputs at the positions of the outputs, and `convolved` gives
    `gain * y + shift` of the convolution `y` of a layer and maps.
    """
    y = normalized(block.conv1, block.bn1, maps, convolved, training)
    y = [block.activation(of_grid) for of_grid in y]
    y = normalized(block.conv2, block.bn2, y, convolved, training)
    if block.projection is not None:
        parts = block.projection, block.projection_bn
        skip = normalized(*parts, skip, _projected, training)
    return [block.activation(a + b) for a, b in zip(y, skip, strict=True)]


def _projected(projection, maps, gain=1.0, shift=None) -> list:
    kernel = ops.reshape(projection.kernel * gain, projection.kernel.shape[-2:])
    y = [ops.matmul(x, ops.cast(kernel, x.dtype)) for x in maps]
    if shift is not None:
        y = [x + ops.cast(shift, x.dtype) for x in y]
    return [unfused(x) for x in y]


def normalized(conv, normalization, maps, convolved: Callable, training) -> list:
    """Batch normalization of a convolution, without passes over maps for its bias.

    In inference it is folded into the convolution's weights.
    """
    bias = 0.0 if conv.bias is None else conv.bias
    trains = training and normalization.trainable
    if trains and fuses(normalization, maps[0]) and not conv.activity_regularizer:
        # Normalization cancels the bias, which has a gradient, zero.
        y = convolved(conv, maps, gain=1.0 + 0.0 * bias)
        y = normalized_jointly(normalization, y, training)
        normalization.moving_mean.assign_add((1 - normalization.momentum) * bias)
        return y
    if trains or conv.activity_regularizer:
        y = convolved(conv, maps, shift=conv.bias)
        for x in y if conv.activity_regularizer else []:
            conv.add_loss(conv.activity_regularizer(x))
        return normalized_jointly(normalization, y, training)
    gain = normalization.gamma / ops.sqrt(
        normalization.moving_variance + normalization.epsilon
    )
    shift = normalization.beta + (bias - normalization.moving_mean) * gain
    return convolved(conv, maps, gain=gain, shift=shift)
