"""Networks and images whose scores are known."""

import functools

import keras
import numpy as np
from keras import ops

from keras_gdrn.layers import ScaleChannels, ScalePooling

CLASSES = 3
SIGMA0 = (0.5, 1.0, 2.0)


class KnowsItsScale(keras.layers.Layer):
    """Scores the class that an image states, at the scale that fits its size best.

    An "image" is (class, size); the score is `10 - |log2(size) - log2(σ_0)|`, and zero
    for the other classes.
    """

    def call(self, images, sigma0=(1.0,)):
        parts = ops.split(images, len(sigma0), axis=0)
        scored = zip(parts, sigma0, strict=True)
        return ops.concatenate([self._scores(part, s) for part, s in scored], axis=0)

    def _scores(self, images, sigma0):
        fit = 10 - ops.abs(ops.log2(images[:, 1:]) - np.log2(sigma0))
        return fit * ops.one_hot(ops.cast(images[:, 0], "int32"), CLASSES)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], CLASSES)


@functools.cache  # nothing changes it, so what is compiled is compiled once
def network(pooling="max", after=None, **options):
    image = keras.Input((2,))
    x = ScaleChannels(KnowsItsScale(), SIGMA0, density=None)(image)
    x = ScalePooling(pooling, **options)(x)
    return keras.Model(image, x if after is None else after(x))


def images(size, count=7):
    labels = np.arange(count) % CLASSES
    return np.stack([labels, np.full(count, size)], axis=1).astype("float32"), labels


X, Y = images(1.0)


def sized(*sizes):
    return {size: images(size) for size in sizes}
