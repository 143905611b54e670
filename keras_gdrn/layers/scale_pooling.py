import keras
from keras import ops

from keras_gdrn._checks import check_choice, check_number, is_number
from keras_gdrn.layers._arguments import check_options
from keras_gdrn.layers._backends import lowest, maximum, single_or_double

MODES = ("max", "logsumexp", "average")


@keras.saving.register_keras_serializable(package="keras_gdrn")
class ScalePooling(keras.layers.Layer):
    """Pools over scale channels, whatever their order.

    `max_i Γ_i`, `log Σ_i exp Γ_i` or `1/N Σ_i Γ_i` over axis 1. In training, each scale
    channel of each sample is dropped with probability `dropout`, but at least one is
    kept. Dropped channels count neither in the maximum and the sums nor in the number
    `N` of the average.

    Source: Perzanowski & Lindeberg, Eqs. max-, logsumexp- and avg-pooling-over-scales;
    scale-channel dropout from Perzanowski & Lindeberg 2025. Departure: a dropped
    channel is excluded rather than set to zero, so that it cannot win the maximum.

    Args:
        mode: `"max"`, `"logsumexp"` or `"average"`.
        dropout: Probability in [0, 1) that a scale channel is dropped.
        seed: Random seed of the dropout, an integer or `None`.

    Input shape:
        `(batch, scale, …)`, with at least three axes.

    Output shape:
        `(batch, …)`.

    Raises:
        ValueError: If `mode` is unknown, `dropout` is outside [0, 1), or the input has
            fewer than three axes.

    Example:

    >>> ScalePooling("max", dropout=0.3)(keras.Input((6, 10))).shape
    (None, 10)
    """

    def __init__(self, mode="max", dropout=0.0, seed=None, **kwargs):
        check_options(self, ScalePooling, kwargs)
        super().__init__(**kwargs)
        if not (is_number(dropout) and 0 <= dropout < 1):
            raise ValueError(
                f"`dropout` must be in [0, 1). Received: dropout={dropout!r}"
            )
        self.mode = check_choice("mode", mode, MODES)
        self.dropout = float(dropout)
        if seed is not None:
            check_number("seed", seed, whole=True)
        self.seed = seed if seed is None else int(seed)
        if dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed)

    def build(self, input_shape):
        if len(input_shape) < 3:
            raise ValueError(
                "`ScalePooling` takes inputs (batch, scale, …), as `ScaleChannels` "
                "returns them: (batch, scale, class) or maps at each scale. "
                f"Received: input_shape={tuple(input_shape)}"
            )

    def call(self, inputs, training=False):
        inputs, kept = ops.cast(inputs, self.compute_dtype), None
        if training and self.dropout > 0:
            kept = self._kept_channels(inputs)
        if self.mode == "average":
            return _mean(inputs, kept)
        if self.mode == "max":
            return _max(inputs, kept)
        return _logsumexp(inputs, kept)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], *input_shape[2:])

    def get_config(self):
        config = super().get_config()
        config.update(mode=self.mode, dropout=self.dropout, seed=self.seed)
        return config

    def _kept_channels(self, inputs):
        shape = ops.shape(inputs)
        chance = keras.random.uniform(
            (shape[0], shape[1]), dtype="float32", seed=self.seed_generator
        )
        # The channel with the highest chance is kept, whatever the dropout.
        best = ops.expand_dims(maximum(chance, axis=1), 1)
        kept = (chance >= self.dropout) | (chance == best)
        return ops.reshape(kept, (shape[0], shape[1]) + (1,) * (len(shape) - 2))


def _max(inputs, kept):
    if kept is not None:
        inputs = ops.where(kept, inputs, lowest(inputs.dtype))
    return maximum(inputs, axis=1)


def _logsumexp(inputs, kept):
    if kept is not None:  # exp(-1000) is 0 in every dtype
        highest = ops.expand_dims(ops.stop_gradient(_max(inputs, kept)), 1)
        inputs = ops.where(kept, inputs, highest - 1000.0)
    return ops.logsumexp(inputs, axis=1)


def _mean(inputs, kept):
    if kept is None:
        return ops.mean(inputs, axis=1)
    # The sum may overflow float16 where the mean does not.
    wide = single_or_double(inputs.dtype)
    sums = ops.sum(ops.where(kept, ops.cast(inputs, wide), 0.0), axis=1)
    return ops.cast(sums / ops.sum(ops.cast(kept, wide), axis=1), inputs.dtype)
