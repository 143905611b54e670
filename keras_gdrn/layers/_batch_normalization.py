import math
from typing import Any

import keras
from keras import ops

from keras_gdrn.layers._unfused import unfused


def batch_normalization(name: str | None = None, dtype=None):
    """Batch normalization with the paper's constants.

    In the authors' framework this momentum is one minus Keras' (0.1 there). With Keras'
    default of 0.99, a short training would leave the statistics at their initial ones.
    """
    return BatchNormalization(momentum=0.9, epsilon=1e-5, name=name, dtype=dtype)


@keras.saving.register_keras_serializable(package="keras_gdrn")
class BatchNormalization(keras.layers.BatchNormalization):
    """Keras' layer, with one fused operation for the training step on TensorFlow.

    Several operations over whole maps take about four times as long, which slows down
    narrow networks at fine scales.
    """

    def call(self, inputs, training=None, mask=None, bias=None):
        """Normalizes `inputs + bias`; training need not add the bias, `(channels,)`.

        Subtracting the mean cancels it: only the mean depends on it, not the outputs.
        """
        if not (training and self.trainable and mask is None and self._fuses(inputs)):
            biased = inputs if bias is None else inputs + ops.cast(bias, inputs.dtype)
            return unfused(super().call(biased, training=training, mask=mask))
        gamma, beta = self.gamma, self.beta
        if bias is not None:  # gives it a gradient, zero
            bias = ops.cast(bias, beta.dtype)
            beta = beta + 0.0 * bias
        outputs, mean, variance = _fused(inputs, gamma, beta, self.epsilon)
        mean = mean if bias is None else mean + bias
        kept, new = self.momentum, 1.0 - self.momentum
        self.moving_mean.assign(self.moving_mean * kept + mean * new)
        self.moving_variance.assign(self.moving_variance * kept + variance * new)
        return unfused(ops.cast(outputs, self.compute_dtype))

    def _fuses(self, inputs) -> bool:
        """Whether the fused operation does what the options ask for."""
        return (
            keras.backend.backend() == "tensorflow"
            and len(inputs.shape) > 2
            and self.axis in (-1, len(inputs.shape) - 1)
            and self.scale
            and self.center
            and keras.backend.standardize_dtype(self.gamma.dtype) == "float32"
            and not self.synchronized
            and not getattr(self, "renorm", False)  # since Keras 3.14
        )


def normalized_jointly(
    normalization, maps: list, training: bool | None, bias=None
) -> list:
    """Batch normalization with the statistics of all maps together.

    Args:
        normalization: Keras' `BatchNormalization`, or the one above.
        maps: Tensors of one rank.
        training: As in a layer's `call`.
        bias: As for `BatchNormalization.call`.
    """
    trains = training and normalization.trainable
    if len(maps) == 1 or not trains:
        if bias is not None and type(normalization) is not BatchNormalization:
            maps, bias = [x + ops.cast(bias, x.dtype) for x in maps], None
        how = {} if bias is None else {"bias": bias}
        return [normalization(x, training=training, **how) for x in maps]
    if type(normalization) is BatchNormalization and normalization._fuses(maps[0]):
        return _as_one_map(normalization, maps, bias)
    wide = [ops.cast(x, normalization.variable_dtype) for x in maps]
    mean, variance = _joint_moments(normalization, wide)
    gain = ops.rsqrt(variance + normalization.epsilon)
    gain = gain if normalization.gamma is None else gain * normalization.gamma
    shift = -mean * gain
    shift = shift if normalization.beta is None else shift + normalization.beta
    if bias is not None:  # gives it a gradient, zero
        bias = ops.cast(bias, mean.dtype)
        mean, shift = mean + bias, shift + 0.0 * bias
    kept = normalization.momentum
    for moving, new in (
        (normalization.moving_mean, mean),
        (normalization.moving_variance, variance),
    ):
        moving.assign(moving * kept + new * (1 - kept))
    shape = [1] * len(maps[0].shape)
    shape[normalization.axis] = -1
    gain, shift = ops.reshape(gain, shape), ops.reshape(shift, shape)
    return [ops.cast(x * gain + shift, normalization.compute_dtype) for x in wide]


def _as_one_map(normalization: BatchNormalization, maps: list, bias) -> list:
    """Normalizes all positions in one row, by the fused operation of TensorFlow.

    On other backends the row would be two more copies of the maps, and save nothing.
    """
    import tensorflow as tf

    channels, rank = maps[0].shape[-1], len(maps[0].shape)
    row = (1, -1, *[1] * (rank - 3), channels)
    rows = [ops.reshape(x, row) for x in maps]
    joined = normalization(ops.concatenate(rows, axis=1), training=True, bias=bias)
    parts = tf.split(joined, [ops.shape(x)[1] for x in rows], axis=1, num=len(rows))
    return [ops.reshape(y, ops.shape(x)) for x, y in zip(maps, parts, strict=True)]


def _joint_moments(normalization, maps: list) -> tuple[Any, Any]:
    """Mean and variance of each channel, over all maps and replicas together."""
    rank = len(maps[0].shape)
    axes = tuple(axis for axis in range(rank) if axis != normalization.axis % rank)
    together = normalization.synchronized
    moments = [ops.moments(x, axes, synchronized=together) for x in maps]
    counts = [ops.cast(ops.size(x), x.dtype) for x in maps]
    shares = [count / sum(counts) for count in counts]
    mean: Any = sum(p * m for p, (m, _) in zip(shares, moments, strict=True))
    variance = sum(
        p * (v + ops.square(m - mean))
        for p, (m, v) in zip(shares, moments, strict=True)
    )
    return mean, variance


def _fused(x, gamma, beta, epsilon: float):
    """The normalized `x`, and the mean and the (biased) variance of each channel."""
    import tensorflow as tf

    shape = ops.shape(x)
    # The operation takes two spatial axes.
    images = ops.reshape(x, (-1, *shape[1:2], math.prod(shape[2:-1]), shape[-1]))
    y, mean, variance = tf.compat.v1.nn.fused_batch_norm(
        images, gamma, beta, epsilon=epsilon, is_training=True
    )
    count = ops.cast(ops.size(x) // shape[-1], variance.dtype)
    # It returns the unbiased variance; Keras' moving average takes the biased one.
    return ops.reshape(y, shape), mean, variance * ((count - 1) / count)
