"""Windows by other means: whole maps, multiplied by the indicator of the window.

Written without the package's windows: their sizes are worked out here.
"""

import contextlib
import math
from unittest import mock

import keras
import numpy as np
from keras import ops

from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock
from keras_gdrn.layers._scale_scope import scale_scope


def convolutions(network) -> list[GaussDerConv]:
    """In the order in which a network without branches applies them."""
    found = []
    for layer in getattr(network, "layers", [network]):
        if isinstance(layer, GaussDerConv):
            found.append(layer)
        elif isinstance(layer, GaussDerResidualBlock):
            found += [layer.conv1, layer.conv2]
        elif isinstance(layer, keras.Model):
            found += convolutions(layer)
    return found


def indicator(spatial, reach: float) -> np.ndarray:
    """One where a pixel is in the center or at most `reach` away from it, row by row.

    Half-widths are whole pixels, rounded up.
    """
    inside = np.ones(spatial)
    for axis, size in enumerate(spatial):
        half = math.ceil(reach)
        distance = np.abs(np.arange(size) - (size - 1) / 2)
        near = distance <= max(half, 0.5)
        inside *= near.reshape([-1 if a == axis else 1 for a in range(len(spatial))])
    return inside


def deviations(network) -> dict[int, float]:
    """Of each convolution's input, in units of the initial scale."""
    total, result = 0.0, {}
    for conv in reversed(convolutions(network)):
        total += conv.sigma**2
        result[id(conv)] = math.sqrt(total)
    return result


def masked_inference(network, x, sigma0, extent: float) -> np.ndarray:
    """`(batch, scale, class)`: the network, with the input of each layer masked."""
    deviation, plain_call = deviations(network), GaussDerConv.call
    scores = []
    for scale in sigma0:

        def call(self, inputs, scale=scale):
            first = 1 if self.data_format == "channels_last" else 2
            spatial = inputs.shape[first : first + inputs.ndim - 2]
            mask = indicator(spatial, extent * scale * deviation[id(self)])
            mask = mask[None, ..., None] if first == 1 else mask[None, None]
            return plain_call(self, inputs * ops.cast(mask, inputs.dtype))

        with mock.patch.object(GaussDerConv, "call", call), scale_scope((scale,)):
            scores.append(ops.convert_to_numpy(network(x, training=False)))
    return np.stack(scores, axis=1)


class MaskedChannels(keras.layers.Layer):
    """The training step too, of what `scale_channel` builds: batch normalization takes
    its statistics over the windows of all scales together."""

    def __init__(self, network, sigma0, extent):
        super().__init__(dtype=network.dtype_policy)
        self.network, self.sigma0, self.extent = network, sigma0, extent

    def build(self, input_shape):
        pass

    def call(self, inputs, training=False):
        left = [sum(c.sigma**2 for c in convolutions(self.network))]

        def masks(maps):
            reach = self.extent * math.sqrt(max(left[0], 0.0))
            spatial = maps[0].shape[1:-1]
            found = [indicator(spatial, reach * scale) for scale in self.sigma0]
            return [ops.cast(m[None, ..., None], maps[0].dtype) for m in found]

        def convolved(layer, maps):
            inside = masks(maps)
            results = []
            for scale, x, mask in zip(self.sigma0, maps, inside, strict=True):
                with scale_scope((scale,)):
                    results.append(layer(x * mask))
            left[0] -= layer.sigma**2
            return results

        def normalized(layer, maps):
            mean, variance = layer.moving_mean, layer.moving_variance
            if training:
                inside = masks(maps)
                pairs = list(zip(maps, inside, strict=True))
                ones = [ops.ones_like(x[..., :1]) * m for x, m in pairs]
                count = sum(ops.sum(one) for one in ones)
                axes = tuple(range(maps[0].ndim - 1))
                mean = sum(ops.sum(x * m, axes) for x, m in pairs) / count
                squares = (ops.sum(ops.square(x - mean) * m, axes) for x, m in pairs)
                variance = sum(squares) / count
            gain = layer.gamma / ops.sqrt(variance + layer.epsilon)
            return [(x - mean) * gain + layer.beta for x in maps]

        def each(function, maps):
            return [function(x) for x in maps]

        def block(layer, maps):
            y = each(
                layer.activation, normalized(layer.bn1, convolved(layer.conv1, maps))
            )
            y = normalized(layer.bn2, convolved(layer.conv2, y))
            if layer.projection is not None:
                maps = normalized(layer.projection_bn, each(layer.projection, maps))
            return [layer.activation(a + b) for a, b in zip(maps, y, strict=True)]

        maps = [inputs for _ in self.sigma0]
        for layer in self.network.layers[1:]:
            if isinstance(layer, GaussDerConv):
                maps = convolved(layer, maps)
            elif isinstance(layer, GaussDerResidualBlock):
                maps = block(layer, maps)
            elif isinstance(layer, keras.layers.BatchNormalization):
                maps = normalized(layer, maps)
            else:
                maps = each(layer, maps)
        return ops.stack(maps, axis=1)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], len(self.sigma0), self.network.output_shape[-1])


@contextlib.contextmanager
def data_format(name: str):
    before = keras.config.image_data_format()
    keras.config.set_image_data_format(name)
    try:
        yield
    finally:
        keras.config.set_image_data_format(before)
