"""Foveated scale channels (FovMax): the image is rescaled, the convolutions are not.

Source: Y. Jansson and T. Lindeberg, Scale-invariant scale-channel networks, Journal of
Mathematical Imaging and Vision, 2022.
"""

import numpy as np
from keras import layers, ops


class Foveation(layers.Layer):
    """The central `size * scale` pixels of an image, resampled to `size`×`size`.

    In `ScaleChannels` with `density=None`, at each scale. Beyond the image is zero; its
    border is not blended with it.
    """

    def __init__(self, size: int, **kwargs):
        super().__init__(**kwargs)
        self.size = size

    def call(self, inputs, sigma0=(1.0,)):
        parts = ops.split(inputs, len(sigma0), axis=0)
        return ops.concatenate(list(map(self.at_scale, parts, sigma0)), axis=0)

    def at_scale(self, images, scale: float):
        rows, columns = (
            resampling(pixels, self.size, scale) for pixels in images.shape[1:3]
        )
        return ops.einsum("iy,byxc,jx->bijc", rows, images, columns)


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
