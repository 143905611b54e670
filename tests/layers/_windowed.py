"""Windows by other means: every layer gets a cut-out of whole maps.

Written without the package's windows: their sizes are worked out here, what lies around
them is put there pixel by pixel, and the layer works on whole images of float64.
"""

import math
from unittest import mock

import keras
import numpy as np
from keras import ops

from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock
from keras_gdrn.layers._batch_normalization import BatchNormalization
from keras_gdrn.layers._scale_scope import Scope, _within


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


def deviations(sigmas: list[float]) -> list[float]:
    """Of each convolution's input, in units of the initial scale."""
    last = sigmas[-1] ** 2
    return [
        math.sqrt(last + sum(sigma**2 for sigma in sigmas[k:]))
        for k in range(len(sigmas))
    ]


def inside(size: int, reach: float) -> np.ndarray:
    """Pixels at most `reach` from the center, rounded up; the center at least."""
    distance = np.abs(np.arange(size) - (size - 1) / 2)
    return np.flatnonzero(distance <= max(math.ceil(reach), 0.5))


def indicator(spatial, reach: float) -> np.ndarray:
    """One at the pixels of the window, zero around them."""
    window = np.zeros(spatial)
    window[np.ix_(*(inside(size, reach) for size in spatial))] = 1
    return window


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


def normalized_over(windows: np.ndarray, layer, maps):
    """Batch normalization whose statistics are those of windows, one for each map."""
    inner, axes = ops.cast(windows[..., None], maps.dtype), range(maps.ndim - 1)
    mean = ops.sum(maps * inner, tuple(axes)) / ops.sum(inner)
    squares = ops.square(maps - mean) * inner
    variance = ops.sum(squares, tuple(axes)) / ops.sum(inner)
    gain = layer.gamma / ops.sqrt(variance + layer.epsilon)
    return (maps - mean) * gain + layer.beta


class WindowedChannels(keras.layers.Layer):
    """`(batch, scale, class)`: the network, whose convolutions see windows alone.

    In training, batch normalization takes its statistics over the windows that the next
    convolution reads, of all scales together.

    Args:
        reaches: `deviations`, which a network with branches does not have in order.
    """

    def __init__(self, network, sigma0, extent, reaches=None):
        super().__init__(dtype=network.dtype_policy)
        self.network, self.sigma0, self.extent = network, sigma0, extent
        sigmas = [conv.sigma for conv in convolutions(network)]
        self.reaches = reaches or deviations(sigmas)

    def build(self, input_shape):
        pass

    def call(self, inputs, training=False):
        convolved, normalization = GaussDerConv._convolved, BatchNormalization.call
        sigma0, extent = self.sigma0, self.extent
        remaining = [*self.reaches, 0.0]

        def on_windows(conv, inputs, *gain, **options):
            first, deviation = conv.data_format == "channels_first", remaining.pop(0)

            def layer(maps):
                maps = ops.moveaxis(maps, -1, 1) if first else maps
                y = convolved(conv, maps, *gain, **options)
                return ops.moveaxis(y, 1, -1) if first else y

            maps, results = ops.moveaxis(inputs, 1, -1) if first else inputs, []
            for scale, x in zip(sigma0, ops.split(maps, len(sigma0)), strict=True):
                with _within(Scope((scale,))):
                    reach = extent * scale * deviation
                    results.append(on_window(layer, x, reach, scale * conv.sigma))
            y = ops.concatenate(results)
            return ops.moveaxis(y, -1, 1) if first else y

        def normalized(layer, maps, training=False, mask=None, bias=None):
            if not training:
                return normalization(layer, maps)
            windows = [
                indicator(maps.shape[1:-1], extent * scale * remaining[0])
                for scale in np.repeat(sigma0, len(maps) // len(sigma0))
            ]
            maps = maps if bias is None else maps + bias
            return normalized_over(np.stack(windows), layer, maps)

        with (
            mock.patch.object(GaussDerConv, "_convolved", on_windows),
            mock.patch.object(BatchNormalization, "call", normalized),
        ):
            y = self.network(ops.concatenate([inputs] * len(sigma0)), training=training)
        return ops.swapaxes(ops.reshape(y, (len(sigma0), -1, y.shape[-1])), 0, 1)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], len(self.sigma0), self.network.output_shape[-1])
