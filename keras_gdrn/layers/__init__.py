"""Layers of Gaussian derivative residual networks."""

from keras_gdrn.layers.gauss_der_conv import GaussDerConv
from keras_gdrn.layers.gauss_der_residual_block import GaussDerResidualBlock
from keras_gdrn.layers.scale_channels import ScaleChannels
from keras_gdrn.layers.scale_pooling import ScalePooling
from keras_gdrn.layers.spatial_selection import SpatialSelection

__all__ = [
    "GaussDerConv",
    "GaussDerResidualBlock",
    "ScaleChannels",
    "ScalePooling",
    "SpatialSelection",
]
