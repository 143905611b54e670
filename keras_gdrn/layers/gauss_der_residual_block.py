from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_gdrn.layers._arguments import cloned
from keras_gdrn.layers._backends import unfused
from keras_gdrn.layers._batch_normalization import (
    batch_normalization,
    normalized_jointly,
)
from keras_gdrn.layers._convolution import with_activity_loss
from keras_gdrn.layers.gauss_der_conv import OPTIONS_OF_WEIGHTS, GaussDerConv

_SHARED_WITH_PROJECTION = ["use_bias", *OPTIONS_OF_WEIGHTS]


def residual(
    block, maps, skip: list, first: Callable, second: Callable, training: bool | None
) -> list:
    """`M(x) = φ(skip(x) + BN(w_2 * φ(BN(w_1 * x))))`.

    `skip` are the inputs at the positions of the outputs. `first` and `second` apply
    the convolutions `w_1` and `w_2`, with their biases, to maps.
    """
    y = with_activity_loss(block.conv1, first(maps))
    y = normalized_jointly(block.bn1, y, training)
    y = [block.activation(x) for x in y]
    y = with_activity_loss(block.conv2, second(y))
    y = normalized_jointly(block.bn2, y, training)
    if block.projection is not None:
        skip = [unfused(block.projection(x)) for x in skip]
        skip = normalized_jointly(block.projection_bn, skip, training)
    return [block.activation(a + b) for a, b in zip(y, skip, strict=True)]


@keras.saving.register_keras_serializable(package="keras_gdrn")
class GaussDerResidualBlock(keras.layers.Layer):
    """Two Gaussian derivative convolutions at one scale, and a skip connection.

    `M(x) = ReLU(skip(x) + BN(w_2 * ReLU(BN(w_1 * x))))`, where `w_1` and `w_2` are
    `GaussDerConv` and `skip` is the identity, or a 1×…×1 convolution with batch
    normalization where the number of channels changes.

    Source: Perzanowski & Lindeberg, Eq. def-gaussder-residual-block-k+1. Departure
    from Eq. def-explicit-…: the intermediate width is that of the output, which gives
    the published numbers of parameters.

    Args:
        filters: Number of channels of both convolutions.
        sigma: Scale σ of both convolutions, in pixels.
        activation: Activation function of the block, by default ReLU.
        data_format: As `GaussDerConv`.
        name, trainable, dtype: As any Keras layer.
        **convolution: Any other argument of `GaussDerConv`, for both convolutions:
            `order`, `zero_order`, `separable`, `trainable_sigma`, `boundary`,
            `epsilon`, `use_bias`, initializers, regularizers and constraints.

    Input shape:
        `(batch, *spatial, channels)`, as `GaussDerConv`.

    Output shape:
        The input's, with `filters` channels.

    Raises:
        ValueError: As `GaussDerConv`.

    Example:

    >>> GaussDerResidualBlock(64, sigma=1.2)(keras.Input((64, 64, 48))).shape
    (None, 64, 64, 64)
    """

    def __init__(
        self,
        filters,
        sigma,
        activation="relu",
        data_format=None,
        name=None,
        trainable=True,
        dtype=None,
        **convolution,
    ):
        super().__init__(name=name, trainable=trainable, dtype=dtype)
        self.activation = keras.activations.get(activation)
        self.conv1, self.conv2 = (
            GaussDerConv(
                filters,
                sigma,
                data_format=data_format,
                name=name,
                dtype=self.dtype_policy,
                **convolution,
            )
            for name in ("conv1", "conv2")
        )
        self.filters, self.sigma = self.conv1.filters, self.conv1.sigma
        self.data_format = self.conv1.data_format
        self.bn1, self.bn2 = (
            batch_normalization(name, self.dtype_policy) for name in ("bn1", "bn2")
        )
        self.projection: Any = None
        self.projection_bn: Any = None

    def build(self, input_shape):
        self.conv1.build(input_shape)
        self.input_spec = self.conv1.input_spec
        self.conv2.build(self.compute_output_shape(input_shape))
        (channels,) = self.input_spec.axes.values()
        # Normalization and projection always have the channels last.
        positions = (None,) * (len(input_shape) - 1)
        for normalization in (self.bn1, self.bn2):
            normalization.build((*positions, self.filters))
        if channels != self.filters:
            options = {n: getattr(self.conv1, n) for n in _SHARED_WITH_PROJECTION}
            options["kernel_initializer"] = cloned(self.conv1.kernel_initializer)
            self.projection = keras.layers.Dense(  # of the channels at each position
                self.filters, name="projection", dtype=self.dtype_policy, **options
            )
            self.projection_bn = batch_normalization("projection_bn", self.dtype_policy)
            self.projection.build((*positions, channels))
            self.projection_bn.build((*positions, self.filters))
        if not self.trainable:  # nor are the layers inside
            for layer in self._flatten_layers(include_self=False):
                layer.trainable = False

    def call(self, inputs, sigma0=(1.0,), training=None):
        """Takes maps of one initial scale after another, as `GaussDerConv`."""
        x = ops.cast(inputs, self.compute_dtype)
        if self.data_format == "channels_first":
            x = ops.moveaxis(x, 1, -1)

        def convolution(layer):
            return lambda maps: [layer.convolved(x, sigma0) for x in maps]

        first, second = convolution(self.conv1), convolution(self.conv2)
        (y,) = residual(self, [x], [x], first, second, training)
        return ops.moveaxis(y, -1, 1) if self.data_format == "channels_first" else y

    def compute_output_shape(self, input_shape):
        return self.conv1.compute_output_shape(input_shape)

    def get_config(self):
        convolution = self.conv1.get_config()
        config = {**convolution, **super().get_config()}
        config["activation"] = keras.activations.serialize(self.activation)
        return config
