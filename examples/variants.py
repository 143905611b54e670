"""Two of the package's choices undone in training, to see what they are worth.

In inference these are the functions of the layers that they replace.
"""

import keras
from keras import ops

from keras_gdrn.layers import ScaleChannels, ScalePooling


class SeparateStatistics(ScaleChannels):
    """Batch normalization takes its statistics over each scale channel by itself."""

    def call(self, inputs, training=None):
        outputs = [self._at(inputs, (sigma0,), training) for sigma0 in self.sigma0]
        return ops.concatenate(outputs, axis=1)


class DropoutToZero(ScalePooling):
    """A dropped scale channel takes part in the pooling, with scores of zero."""

    def call(self, inputs, training=False):
        if training and self.dropout > 0:
            inputs = inputs * ops.cast(self._kept_channels(inputs), inputs.dtype)
        return super().call(inputs)


VARIANTS = {
    "separate statistics": (SeparateStatistics, ScalePooling),
    "dropout to zero": (ScaleChannels, DropoutToZero),
}


def variant(model: keras.Model, name: str | None) -> keras.Model:
    """The network, with its weights, as it is to be trained."""
    if name is None:
        return model
    channels, pooling = VARIANTS[name]
    old = model.get_layer("scale_channels")
    image = keras.Input(model.input_shape[1:], name="image")
    config = {**old.get_config(), "network": old.network}
    scores = channels(**config)(image)
    config = model.get_layer("scale_pooling").get_config()
    return keras.Model(image, pooling.from_config(config)(scores), name=model.name)
