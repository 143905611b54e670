"""Windows by other means: every layer gets a cut-out of whole maps.

Written without the package's windows: their sizes are worked out here, what lies around
them is put there pixel by pixel, and the layer works on whole images of float64.
"""

import math
from functools import partial
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


def deviations(network) -> dict[int, float]:
    """Of each convolution's input, in units of the initial scale."""
    sigmas = [conv.sigma for conv in convolutions(network)]
    last = sigmas[-1] ** 2
    return {
        id(conv): math.sqrt(last + sum(sigma**2 for sigma in sigmas[k:]))
        for k, conv in enumerate(convolutions(network))
    }


def inside(size: int, reach: float) -> np.ndarray:
    """Pixels at most `reach` from the center, rounded up; the center at least."""
    distance = np.abs(np.arange(size) - (size - 1) / 2)
    return np.flatnonzero(distance <= max(math.ceil(reach), 0.5))


def indicator(spatial, reach: float) -> np.ndarray:
    result = np.ones(spatial)
    for axis, size in enumerate(spatial):
        near = np.isin(np.arange(size), inside(size, reach))
        result *= near.reshape([-1 if a == axis else 1 for a in range(len(spatial))])
    return result


def on_window(layer, x, reach: float, sigma: float):
    """The layer on the window of whole maps, channels last, and its mirror images."""
    margins = []
    for axis, size in enumerate(x.shape[1:-1], start=1):
        pixels, margin = inside(size, reach), 0
        if len(pixels) < size:
            margin = 12 * math.ceil(sigma) + 20
            folded = np.arange(-margin, len(pixels) + margin) % (2 * len(pixels))
            pixels = pixels[np.minimum(folded, 2 * len(pixels) - 1 - folded)]
        margins.append((margin, (size - len(pixels) + 2 * margin) // 2))
        x = ops.take(x, pixels, axis=axis)
    y = layer(x)
    for axis, (margin, around) in enumerate(margins, start=1):
        y = ops.take(y, np.arange(margin, y.shape[axis] - margin), axis=axis)
        padding = [(0, 0)] * y.ndim
        padding[axis] = (around, around)
        y = ops.pad(y, padding)
    return y


def windowed_inference(network, x, sigma0, extent: float) -> np.ndarray:
    """`(batch, scale, class)`: the network, whose convolutions see windows alone."""
    deviation, convolved = deviations(network), GaussDerConv._convolved
    patched = partial(mock.patch.object, GaussDerConv, "_convolved")
    scores = []
    for scale in sigma0:

        def on_windows(self, inputs, *normalization, scale=scale, **options):
            first = self.data_format == "channels_first"

            def layer(maps):
                maps = ops.moveaxis(maps, -1, 1) if first else maps
                y = convolved(self, maps, *normalization, **options)
                return ops.moveaxis(y, 1, -1) if first else y

            maps = ops.moveaxis(inputs, 1, -1) if first else inputs
            reach = extent * scale * deviation[id(self)]
            y = on_window(layer, maps, reach, scale * self.sigma)
            return ops.moveaxis(y, -1, 1) if first else y

        with patched(on_windows), scale_scope((scale,)):
            scores.append(ops.convert_to_numpy(network(x, training=False)))
    return np.stack(scores, axis=1)


class WindowedChannels(keras.layers.Layer):
    """The training step too, of what `scale_channel` builds: batch normalization takes
    its statistics over the windows of all scales together."""

    def __init__(self, network, sigma0, extent):
        super().__init__(dtype=network.dtype_policy)
        self.network, self.sigma0, self.extent = network, sigma0, extent

    def build(self, input_shape):
        pass

    def call(self, inputs, training=False):
        remaining = [*deviations(self.network).values(), 0.0]
        deviation = {
            id(c): d
            for c, d in zip(convolutions(self.network), remaining, strict=False)
        }

        def convolved(layer, maps):
            remaining.pop(0)
            results = []
            for scale, x in zip(self.sigma0, maps, strict=True):
                reach = self.extent * scale * deviation[id(layer)]
                with scale_scope((scale,)):
                    results.append(on_window(layer, x, reach, scale * layer.sigma))
            return results

        def masks(maps):
            """Of the windows that the next convolution reads."""
            reaches = [self.extent * scale * remaining[0] for scale in self.sigma0]
            found = [indicator(maps[0].shape[1:-1], reach) for reach in reaches]
            return [ops.cast(m[None, ..., None], maps[0].dtype) for m in found]

        def normalized(layer, maps):
            mean, variance = layer.moving_mean, layer.moving_variance
            if training:
                windows = masks(maps)
                pairs = list(zip(maps, windows, strict=True))
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
