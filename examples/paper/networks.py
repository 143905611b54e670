"""Networks that are compared with the package's: the control, and two variants."""

from collections.abc import Sequence

import keras
from keras import layers, ops

from keras_gdrn.layers import ScaleChannels, ScalePooling


def plain_resnet(
    input_shape: tuple[int, int, int], classes: int, widths: Sequence[int]
) -> keras.Model:
    """The control: 3x3 convolutions, a block for each width but the first.

    Every other block halves the resolution.
    """
    image = keras.Input(input_shape)
    x = _conv_bn(image, widths[0])
    for block, filters in enumerate(widths[1:]):
        strides = 2 if block % 2 == 0 else 1
        y = _conv_bn(layers.ReLU()(x), filters, strides=strides)
        y = _conv_bn(layers.ReLU()(y), filters)
        if strides > 1 or x.shape[-1] != filters:
            # Not a strided convolution, the same otherwise: the gradient of one of
            # 1x1 destroys memory in TensorFlow 2.21 on processors with AVX-512.
            x = _conv_bn(layers.MaxPooling2D(1, strides)(x), filters, size=1)
        x = layers.add([x, y])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(x))
    return keras.Model(image, layers.Dense(classes)(x), name="plain_resnet")


def _conv_bn(x, filters: int, size: int = 3, strides: int = 1):
    x = layers.Conv2D(
        filters, size, strides, padding="same", kernel_initializer="he_uniform"
    )(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


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
    """The network, with its weights, as it is trained; the same in inference."""
    if name is None:
        return model
    channels, pooling = VARIANTS[name]
    old = model.get_layer("scale_channels")
    image = keras.Input(model.input_shape[1:], name="image")
    scores = channels(**{**old.get_config(), "network": old.network})(image)
    config = model.get_layer("scale_pooling").get_config()
    return keras.Model(image, pooling.from_config(config)(scores), name=model.name)
