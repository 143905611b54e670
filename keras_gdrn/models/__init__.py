"""Gaussian derivative residual networks, built from the layers of this package."""

from keras_gdrn.models._builders import gauss_der_resnet, scale_channel
from keras_gdrn.models._copies import only_layer
from keras_gdrn.models._head import HEAD_INITIALIZERS, head_initializers
from keras_gdrn.models._presets import PRESETS, SIX_SCALES, Preset, from_preset
from keras_gdrn.models._trained import TRAINED, Trained
from keras_gdrn.models._transfer import (
    feature_extractor,
    with_input_shape,
    with_sigma0,
)

__all__ = [
    "HEAD_INITIALIZERS",
    "PRESETS",
    "SIX_SCALES",
    "TRAINED",
    "Preset",
    "Trained",
    "feature_extractor",
    "from_preset",
    "gauss_der_resnet",
    "head_initializers",
    "only_layer",
    "scale_channel",
    "with_input_shape",
    "with_sigma0",
]
