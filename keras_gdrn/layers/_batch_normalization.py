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


def normalized_jointly(normalization, maps: list, training: bool | None) -> list:
    """Keras' batch normalization, with the statistics of all maps together."""
    fused = fuses(normalization, maps[0])
    if not (training and normalization.trainable) or (len(maps) == 1 and not fused):
        return [unfused(normalization(x, training=training)) for x in maps]
    outputs, mean, variance = (_fused if fused else _in_parts)(normalization, maps)
    kept = normalization.momentum
    for moving, new in (
        (normalization.moving_mean, mean),
        (normalization.moving_variance, variance),
    ):
        moving.assign(moving * kept + new * (1 - kept))
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
        and not getattr(normalization, "renorm", False)  # since Keras 3.14
    )


def _fused(normalization, maps: list) -> tuple[list, Any, Any]:
    """All positions in one row, by TensorFlow's operation.

    Several operations over whole maps take about four times as long. On other backends
    the row would be two more copies of the maps, and save nothing.
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
    """Over all maps and replicas together, by separate operations."""
    wide = [ops.cast(x, normalization.variable_dtype) for x in maps]
    rank = len(maps[0].shape)
    axes = tuple(axis for axis in range(rank) if axis != normalization.axis % rank)
    together = normalization.synchronized
    moments = [ops.moments(x, axes, synchronized=together) for x in wide]
    counts = [ops.cast(ops.size(x), x.dtype) for x in wide]
    shares = [count / sum(counts) for count in counts]
    mean: Any = sum(p * m for p, (m, _) in zip(shares, moments, strict=True))
    variance = sum(
        p * (v + ops.square(m - mean))
        for p, (m, v) in zip(shares, moments, strict=True)
    )
    gain = ops.rsqrt(variance + normalization.epsilon)
    gain = gain if normalization.gamma is None else gain * normalization.gamma
    shift = -mean * gain
    shift = shift if normalization.beta is None else shift + normalization.beta
    shape = [1] * rank
    shape[normalization.axis] = -1
    gain, shift = ops.reshape(gain, shape), ops.reshape(shift, shape)
    return [x * gain + shift for x in wide], mean, variance
