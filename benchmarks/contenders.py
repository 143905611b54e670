"""Alternatives to the package's layer: the same function, evaluated otherwise."""

import dataclasses

import keras
import numpy as np
from keras import ops
from scipy.linalg import toeplitz

from keras_gdrn import kernels
from keras_gdrn.layers import ScaleChannels, ScalePooling, SpatialSelection

# Private, so that networks of the layers here differ from the package's only in how a
# layer is evaluated.
from keras_gdrn.layers._batch_normalization import batch_normalization
from keras_gdrn.models import ARCHITECTURES, gauss_der_resnet

# The network of STIR, for objects at any position, and all others by name.
PRESETS = {
    "anywhere": dataclasses.replace(
        ARCHITECTURES["digits"],
        input_shape=(64, 64, 1),
        classes=36,
        widths=(12, 16, 24, 32),
        ratio=1.35,
        sigma0=tuple(2 ** (k / 2) for k in range(-2, 4)),
        spatial_selection="max",
    ),
    **ARCHITECTURES,
}

INDICES = kernels.multi_indices(2, 2)
ONE = "one pass of 3×3"
EPSILON = 5e-3  # of truncation, as in the paper


class PaperConv(keras.layers.Layer):
    """The paper's scheme: separable smoothing, central differences, 1×1 convolution.

    The smoothing is a product with a banded matrix, which is faster here than the
    depthwise convolutions of TensorFlow (with XLA by a factor of ten and more).
    """

    def __init__(self, filters, sigma, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.filters, self.sigma = filters, sigma
        self.activation = keras.activations.get(activation)

    def build(self, input_shape):
        shape = (len(INDICES), input_shape[-1], self.filters)
        self.kernel = self.add_weight(shape, "he_uniform", name="kernel")
        self.bias = self.add_weight((self.filters,), "zeros", name="bias")

    def call(self, inputs, sigma0=(1.0,)):
        parts = ops.split(inputs, len(sigma0), axis=0)
        y = ops.concatenate(list(map(self.at_scale, parts, sigma0)), axis=0)
        return self.activation(y + self.bias)

    def at_scale(self, x, scale: float):
        sigma = scale * self.sigma
        for axis in (1, 2):
            x = _smooth(x, sigma, axis)
        jet = ops.concatenate(_differences(x, sigma), axis=-1)
        kernel = ops.reshape(self.kernel, (1, 1, -1, self.filters))
        return ops.conv(jet, kernel, padding="same")


class DenseConv(PaperConv):
    """The sum of the jet's kernels as one dense k×k kernel."""

    def at_scale(self, x, scale: float):
        sigma = scale * self.sigma
        radius = kernels.truncation_radius(sigma, EPSILON, dimensions=2)
        axis = [kernels.gaussian_derivative(sigma, a, radius) for a in range(3)]
        jet = [
            kernels.multinomial(alpha) * np.outer(axis[alpha[0]], axis[alpha[1]])
            for alpha in INDICES
        ]
        jet = ops.convert_to_tensor(np.stack(jet), x.dtype)
        kernel = ops.einsum("ahw,acf->hwcf", jet, self.kernel)
        return ops.conv(x, kernel, padding="same")


def plain_conv(filters, sigma, activation=None):
    return keras.layers.Conv2D(filters, 3, padding="same", activation=activation)


def plain_normalization():
    """Keras' own layer, which takes many operations on TensorFlow."""
    return keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)


def network_contenders(settings, batch: int) -> dict:
    """Functions that build a network, and the number of images that it gets.

    The 3×3 network gets as many images as there are passes of all scale channels.

    Args:
        settings: An `Architecture`. Only the package's networks use its zero-order term
            and separable blocks.
    """
    arguments = dataclasses.asdict(settings)
    whole = {**arguments, "receptive_field": None}
    coarse = {**arguments, "density": 0.7}
    pixels = {**arguments, "density": None}
    # What matters most comes first: a GPU's compiler takes a minute for each.
    return {
        "3×3 ResNet": (lambda: plain_network(settings), len(settings.sigma0) * batch),
        "GaussDerResNet": (lambda: gauss_der_resnet(**arguments), batch),
        "density 0.7": (lambda: gauss_der_resnet(**coarse), batch),
        "on whole maps": (lambda: gauss_der_resnet(**whole), batch),
        "on the pixels": (lambda: gauss_der_resnet(**pixels), batch),
        "paper's scheme": (lambda: paper_network(settings), batch),
        ONE: (lambda: plain_network(settings), batch),
    }


def plain_network(settings) -> keras.Model:
    return residual_network(settings, plain_conv, plain_normalization)


def paper_network(settings) -> keras.Model:
    """The paper's scheme, on whole maps of pixels."""
    channel = residual_network(settings, PaperConv)
    image = keras.Input(settings.input_shape)
    scores = ScaleChannels(channel, settings.sigma0, density=None)(image)
    return keras.Model(image, ScalePooling("max")(scores))


def residual_network(
    settings, convolution, normalization=batch_normalization
) -> keras.Model:
    """The architecture of `scale_channel` with another convolution."""
    x = image = keras.Input(settings.input_shape)
    widths, ratio = settings.widths, settings.ratio
    x = keras.layers.ReLU()(normalization()(convolution(widths[0], 1.0)(x)))
    for block, width in enumerate(widths[1:], start=1):
        y = normalization()(convolution(width, ratio**block)(x))
        y = normalization()(convolution(width, ratio**block)(keras.layers.ReLU()(y)))
        if x.shape[-1] != width:
            x = normalization()(keras.layers.Conv2D(width, 1)(x))
        x = keras.layers.ReLU()(keras.layers.Add()([x, y]))
    sigma = ratio ** len(widths)
    x = convolution(settings.classes, sigma, activation="relu")(x)
    return keras.Model(image, SpatialSelection(settings.spatial_selection)(x))


def _smooth(x, sigma, axis):
    shape = x.shape
    radius = kernels.truncation_radius(sigma, EPSILON, dimensions=2)
    half = kernels.discrete_gaussian(sigma, radius)[radius:]
    matrix = toeplitz(np.pad(half, (0, shape[axis]))[: shape[axis]])
    matrix = ops.convert_to_tensor(matrix, dtype=x.dtype)
    if axis == 2:
        return ops.matmul(matrix, x)
    x = ops.reshape(x, (-1, shape[1], shape[2] * shape[3]))
    return ops.reshape(ops.matmul(matrix, x), (-1, *shape[1:]))


def _differences(x, sigma) -> list:
    """The second-order jet by the stencils of Eqs. central-difference-operators."""
    height, width = x.shape[1:3]
    x = ops.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])

    def at(row: int, column: int):
        """Zero outside."""
        return x[:, 1 + row : 1 + row + height, 1 + column : 1 + column + width]

    return [
        sigma / 2 * (at(1, 0) - at(-1, 0)),
        sigma / 2 * (at(0, 1) - at(0, -1)),
        sigma**2 * (at(1, 0) - 2 * at(0, 0) + at(-1, 0)),
        sigma**2 / 2 * (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)),
        sigma**2 * (at(0, 1) - 2 * at(0, 0) + at(0, -1)),
    ]
