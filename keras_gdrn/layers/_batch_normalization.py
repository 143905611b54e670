"""Batch normalization with the statistics of several maps together."""

from typing import Any

import keras
from keras import ops

from keras_gdrn.layers._backends import unfused


def batch_normalization(name: str | None = None, dtype=None):
    """Batch normalization with the paper's constants.

    In the authors' framework this momentum is one minus Keras' (0.1 there). With Keras'
    default of 0.99, a short training would leave the statistics at their initial ones.
    """
    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, name=name, dtype=dtype
    )


def normalizes(layer) -> bool:
    """Whether it is Keras' batch normalization, or of a subclass with its `call`."""
    same = type(layer).call is keras.layers.BatchNormalization.call
    return same and not getattr(layer, "renorm", False)  # since Keras 3.14


def normalized_jointly(normalization, maps: list, training: bool | None) -> list:
    """Keras' batch normalization, with the statistics of all maps together."""
    if not (training and normalization.trainable):
        return [unfused(normalization(x, training=training)) for x in maps]
    normalize = _fused if fuses(normalization, maps[0]) else _in_parts
    outputs, mean, variance = normalize(normalization, maps)
    momentum = normalization.momentum
    moving = normalization.moving_mean, normalization.moving_variance
    for old, new in zip(moving, (mean, variance), strict=True):
        old.assign(old * momentum + new * (1 - momentum))
    return [unfused(ops.cast(y, normalization.compute_dtype)) for y in outputs]


def fuses(normalization, x) -> bool:
    """Whether TensorFlow's fused operation does what the options ask for."""
    return (
        keras.backend.backend() == "tensorflow"
        and normalization.axis in (-1, len(x.shape) - 1)
        and normalization.scale
        and normalization.center
        and keras.backend.standardize_dtype(normalization.gamma.dtype) == "float32"
        and not normalization.synchronized
    )


def _fused(normalization, maps: list) -> tuple[list, Any, Any]:
    """All positions in one row, by TensorFlow's operation.

    Several operations over whole maps take longer. On other backends the row would be
    two more copies of the maps, and save nothing.
    """
    import tensorflow as tf

    rows = [ops.reshape(x, (1, -1, 1, x.shape[-1])) for x in maps]
    y, mean, variance = tf.compat.v1.nn.fused_batch_norm(
        ops.concatenate(rows, axis=1),
        normalization.gamma,
        normalization.beta,
        epsilon=normalization.epsilon,
        is_training=True,
    )
    parts = tf.split(y, [ops.shape(x)[1] for x in rows], axis=1, num=len(rows))
    outputs = [ops.reshape(y, ops.shape(x)) for x, y in zip(maps, parts, strict=True)]
    count = ops.cast(ops.shape(y)[1], variance.dtype)
    # It returns the unbiased variance; Keras' moving average takes the biased one.
    return outputs, mean, variance * ((count - 1) / count)


def _in_parts(normalization, maps: list) -> tuple[list, Any, Any]:
    """Over all maps and replicas together, by separate operations.

    Values are taken relative to the moving mean, so that a difference of means of
    squares loses few digits. One pass over a map gives both sums for each image.
    """
    rank = len(maps[0].shape)
    shape = [1] * rank
    shape[normalization.axis] = -1
    axes = tuple(axis for axis in range(1, rank) if shape[axis] == 1)
    center = ops.stop_gradient(ops.convert_to_tensor(normalization.moving_mean))
    maps = [ops.cast(x, center.dtype) - ops.reshape(center, shape) for x in maps]
    sums = ops.concatenate(
        [ops.stack([ops.sum(x, axes), ops.sum(ops.square(x), axes)]) for x in maps],
        axis=1,
    )
    average = ops.mean(sums, axis=1)
    if normalization.synchronized:  # over replicas too
        average, _ = ops.moments(sums, [1], synchronized=True)
    of_images = ops.cast(ops.size(sums), average.dtype)  # int32 may overflow
    values = 2 * sum(ops.cast(ops.size(x), average.dtype) for x in maps)
    mean, square = ops.unstack(average * of_images / values)
    variance = ops.maximum(square - ops.square(mean), 0.0)
    gain = ops.rsqrt(variance + normalization.epsilon)
    gain = gain if normalization.gamma is None else gain * normalization.gamma
    shift = -mean * gain
    shift = shift if normalization.beta is None else shift + normalization.beta
    gain, shift = ops.reshape(gain, shape), ops.reshape(shift, shape)
    return [x * gain + shift for x in maps], center + mean, variance
