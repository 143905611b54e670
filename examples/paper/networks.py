"""The plain network for comparison."""

from collections.abc import Sequence

import keras
from keras import layers


def plain_resnet(
    input_shape: tuple[int, int, int], classes: int, widths: Sequence[int]
) -> keras.Model:
    """The control: 3x3 convolutions, a block for each width but the first.

    Every other block halves the resolution.
    """

    def conv_bn(x, filters: int, size: int = 3, strides: int = 1):
        options = {"padding": "same", "kernel_initializer": "he_uniform"}
        x = layers.Conv2D(filters, size, strides, **options)(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    image = keras.Input(input_shape)
    x = conv_bn(image, widths[0])
    for block, filters in enumerate(widths[1:]):
        strides = 2 if block % 2 == 0 else 1
        y = conv_bn(layers.ReLU()(x), filters, strides=strides)
        y = conv_bn(layers.ReLU()(y), filters)
        if strides > 1 or x.shape[-1] != filters:
            # Instead of a strided 1x1 convolution, which is the same: its gradient
            # corrupts memory in TensorFlow 2.21 on processors with AVX-512.
            x = conv_bn(layers.MaxPooling2D(1, strides)(x), filters, size=1)
        x = layers.add([x, y])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(x))
    return keras.Model(image, layers.Dense(classes)(x), name="plain_resnet")
