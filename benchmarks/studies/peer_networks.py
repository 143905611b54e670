"""Two other ways to a scale-invariant network, small, from their publications.

Both share weights over scales, so each is a network that `ScaleChannels` applies at
several scales, and is trained in stages as the package's own networks are:

- foveated scale channels (FovMax): Y. Jansson and T. Lindeberg, Scale-invariant
  scale-channel networks, Journal of Mathematical Imaging and Vision, 2022. The image
  is rescaled about its center, the convolutions are not;
- a scale-equivariant steerable network (SESN): I. Sosnovik, M. Szmaja and A. Smeulders,
  Scale-equivariant steerable networks, ICLR 2020. The convolutions are rescaled.

Departures: widths and depths for some 9000 parameters; training in two stages; of
SESN, Hermite polynomials up to order 3, kernels without extent along the scales, each
only as large as its scale demands, which is faster and changes nothing else.
"""

from collections.abc import Sequence
from math import factorial, pi, sqrt

import keras
import numpy as np
from keras import layers, ops

from keras_gdrn.layers import ScaleChannels, ScalePooling

# The inside: only so can a layer of another kind tell at which scales it is applied.
from keras_gdrn.layers._scale_scope import current_scales

CLASSES = 10
MAX_ORDER, REACH = 3, 3.5  # of Hermite kernels, which end at so many σ
# Kernels of a finer scale cannot be sampled, those of a coarser one take too long.
SESN_SCALES = tuple(2 ** (k / 2) for k in range(-2, 3))


class AtEachScale(layers.Layer):
    """Applies `at_scale` to the maps of each scale, which lie one behind the other."""

    def call(self, inputs):
        scales = current_scales()
        parts = ops.split(inputs, len(scales), axis=0)
        return ops.concatenate(list(map(self.at_scale, parts, scales)), axis=0)


class Foveation(AtEachScale):
    """The center of the image on `size`×`size` pixels: `size * scale` pixels of it.

    What lies beyond the image is zero; its border is no mixture with that.
    """

    def __init__(self, size: int, **kwargs):
        super().__init__(**kwargs)
        self.size = size

    def at_scale(self, images, scale: float):
        rows, columns = (
            resampling(pixels, self.size, scale) for pixels in images.shape[1:3]
        )
        return ops.einsum("iy,byxc,jx->bijc", rows, images, columns)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.size, self.size, input_shape[-1])


def resampling(pixels: int, size: int, scale: float):
    """`(size, pixels)`: antialiased cubic interpolation, center upon center."""
    return ops.image.scale_and_translate(
        np.eye(pixels, dtype="float32"),
        (size, pixels),
        scale=np.array([1 / scale], "float32"),
        translation=np.array([(size - pixels / scale) / 2], "float32"),
        spatial_dims=(0,),
        method="cubic",
    )


class HermiteConv(AtEachScale):
    """Convolution at each scale with learned combinations of `hermite_basis`.

    Given an image at each scale it is SESN's lifting; given maps, its convolution of
    scale and space with a kernel that has no extent along the scales.
    """

    def __init__(self, filters: int, sigma: float, **kwargs):
        super().__init__(**kwargs)
        self.filters, self.sigma = filters, sigma

    def build(self, input_shape):
        shape = (len(hermite_basis(self.sigma)), input_shape[-1], self.filters)
        self.kernel = self.add_weight(shape, "he_uniform", name="kernel")

    def at_scale(self, maps, scale: float):
        basis = hermite_basis(scale * self.sigma).astype("float32")
        kernel = ops.einsum("ahw,acf->hwcf", basis, self.kernel)
        return ops.conv(maps, kernel, padding="same")

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.filters)


def hermite_basis(sigma: float) -> np.ndarray:
    """`(function, y, x)`: h_m(y/σ) h_n(x/σ) / σ² for m + n up to `MAX_ORDER`.

    h_n is the Hermite polynomial of order n with its Gaussian envelope, of unit norm;
    1/σ² makes the response to a magnified image that to the image, magnified.
    """
    radius = round(REACH * sigma)
    x = np.arange(-radius, radius + 1) / sigma
    along = [
        np.polynomial.Hermite.basis(order)(x)
        * np.exp(-(x**2) / 2)
        / sqrt(2**order * factorial(order) * sqrt(pi))
        for order in range(MAX_ORDER + 1)
    ]
    orders = [(m, n) for m in range(MAX_ORDER + 1) for n in range(MAX_ORDER + 1 - m)]
    return np.stack([np.outer(along[m], along[n]) for m, n in orders]) / sigma**2


def foveated_network(side: int, scales: Sequence[float]) -> keras.Model:
    """A plain CNN on foveated views, the largest score over all of them."""
    x = image = keras.Input((side, side, 1))
    x = Foveation(28)(x)
    for index, filters in enumerate((8, 12, 16, 24)):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(_normalized(x))
        x = layers.MaxPooling2D(2)(x) if index else x
    channel = keras.Model(image, layers.Dense(CLASSES)(layers.Flatten()(x)))
    image = keras.Input((side, side, 1))
    return keras.Model(
        image, ScalePooling("max")(ScaleChannels(channel, scales)(image))
    )


def sesn(side: int, pool_scores: bool = False) -> keras.Model:
    """Convolutions at each scale, maximum over space and scales, a dense layer.

    The published networks take the maximum of each feature over the scales. With
    `pool_scores` the dense layer comes before: one scale decides, as in scale channels.
    """
    x = image = keras.Input((side, side, 1))
    for index, filters in enumerate((8, 16, 40)):
        x = layers.MaxPooling2D(2)(x) if index else x
        x = layers.ReLU()(_normalized(HermiteConv(filters, sigma=1.2)(x)))
    x = layers.GlobalMaxPooling2D()(x)
    dense = layers.Dense(CLASSES)
    channel = keras.Model(image, dense(x) if pool_scores else x)
    image = keras.Input((side, side, 1))
    x = ScalePooling("max")(ScaleChannels(channel, SESN_SCALES)(image))
    return keras.Model(image, x if pool_scores else dense(x))


def _normalized(x):
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
