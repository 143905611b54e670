"""Layers and networks that break one claim each, on purpose."""

import keras
import numpy as np
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.kernels._axis import smoothing
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from tests.theory.networks import array, at_scale, grey_jet, with_jet


def forgets_the_scale(network):
    """Applies the network itself, whatever the initial scale."""
    return lambda sigma0, images: array(network(images))


def without_scale_normalization(layer):
    """Gaussian derivatives without the factor `σ^|α|`: `C_α / σ_0^|α|`."""

    def apply(sigma0, images):
        plain = with_jet(layer, lambda alpha, c: c / sigma0 ** sum(alpha))
        return at_scale(plain)(sigma0, images)

    return apply


class SubsampledBlock(keras.layers.Layer):
    """A block at half the resolution, brought back to full size by repetition."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def call(self, inputs):
        height, width = inputs.shape[1:3]
        x = self.block(inputs[:, ::2, ::2])
        x = ops.repeat(ops.repeat(x, 2, axis=1), 2, axis=2)
        return x[:, :height, :width]


class HalfPixelShift(GaussDerConv):
    """A kernel of even size: the response lies between two pixels of the first axis."""

    def call(self, inputs):
        y = super().call(inputs)
        return (y + ops.roll(y, 1, axis=1)) / 2


def jet_without_multinomials(coefficient, sigma, **options):
    """A jet in which every mixed derivative counts once."""

    def divided(alpha):
        return coefficient(alpha) / kernels.multinomial(alpha)

    return grey_jet(divided, sigma, **options)


class SmoothThenDifference(GaussDerConv):
    """The paper's order of evaluation, in two dimensions: smooth, round, difference."""

    def call(self, inputs):
        x = ops.cast(inputs, self.compute_dtype)
        for axis in (1, 2):
            size = x.shape[axis]
            smooth = smoothing(size, size, self.sigma, self.boundary)
            smooth = ops.convert_to_tensor(smooth, dtype=x.dtype)
            x = ops.moveaxis(ops.tensordot(smooth, x, axes=([1], [axis])), 0, axis)
        kernel = ops.unstack(ops.convert_to_tensor(self.kernel))
        return sum(
            kernels.multinomial(alpha) * ops.matmul(self._difference(x, alpha), c)
            for alpha, c in zip(self.indices, kernel, strict=True)
        )

    def _difference(self, x, alpha):
        for axis, order in enumerate(alpha, start=1):
            before, after = ops.roll(x, 1, axis=axis), ops.roll(x, -1, axis=axis)
            if order == 1:
                x = (after - before) / 2
            elif order == 2:
                x = after - 2 * x + before
        return self.sigma ** sum(alpha) * x


class ChannelByChannel(keras.layers.Layer):
    """Applies the network once for each scale, with batch statistics of their own."""

    def __init__(self, network, sigma0):
        super().__init__()
        self.network = network
        self.parts = [ScaleChannels(network, [scale]) for scale in sigma0]

    def call(self, inputs, training=None):
        parts = [part(inputs, training=training) for part in self.parts]
        return ops.concatenate(parts, axis=1)


def with_separate_weights(network, sigma0):
    """Each scale channel has its own copy of the network, equal when it is made."""
    copies = [keras.models.clone_model(network) for _ in sigma0]
    for copy in copies:
        copy.set_weights(network.get_weights())

    def apply(images):
        pairs = zip(sigma0, copies, strict=True)
        return np.stack([at_scale(copy)(scale, images) for scale, copy in pairs], 1)

    return apply


def sampled_gaussian(sigma, radius):
    """The continuous Gaussian at the pixels, normalized to sum 1."""
    kernel = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return kernel / kernel.sum()


class PlainConv(keras.layers.Conv2D):
    """The same at every scale."""

    def call(self, inputs, sigma0=(1.0,)):
        return super().call(inputs)
