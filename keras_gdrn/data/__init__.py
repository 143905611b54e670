"""Rescaled image data sets: MATLAB's resizing, canvases, splits and pipelines."""

from keras_gdrn.data._datasets import DATASETS, SIZE_FACTORS, DatasetInfo
from keras_gdrn.data._h5 import read_h5
from keras_gdrn.data._imresize import imresize, rescale
from keras_gdrn.data._load import original_arrays
from keras_gdrn.data._mnist_scale import mnist_scale
from keras_gdrn.data._packed import pack
from keras_gdrn.data._read_image import read_image
from keras_gdrn.data._rescaled import rescaled, rescaled_arrays
from keras_gdrn.data._scenes import (
    SHAPES,
    Scenes,
    Shape,
    centered_shapes,
    random_scenes,
)
from keras_gdrn.data._stir import (
    STIR_SCENARIOS,
    STIR_SIZES,
    stir,
    stir_arrays,
    stir_published,
)

__all__ = [
    "DATASETS",
    "SHAPES",
    "SIZE_FACTORS",
    "STIR_SCENARIOS",
    "STIR_SIZES",
    "DatasetInfo",
    "Scenes",
    "Shape",
    "centered_shapes",
    "imresize",
    "mnist_scale",
    "original_arrays",
    "pack",
    "random_scenes",
    "read_h5",
    "read_image",
    "rescale",
    "rescaled",
    "rescaled_arrays",
    "stir",
    "stir_arrays",
    "stir_published",
]
