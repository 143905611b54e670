"""The control: a plain residual network of 3x3 convolutions."""

from collections.abc import Sequence

import keras
from keras import layers


def plain_resnet(
    input_shape: tuple[int, int, int], classes: int, widths: Sequence[int]
) -> keras.Model:
    """One block for each width but the first; every other one halves the resolution."""
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
