"""Gaussian derivative residual networks, built from the layers of this package."""

from keras_gdrn.models._architectures import (
    ARCHITECTURES,
    SIX_SCALES,
    Architecture,
    architecture,
)
from keras_gdrn.models._builders import gauss_der_resnet, scale_channel
from keras_gdrn.models._card import Card
from keras_gdrn.models._classify import Prediction, classify, decode_predictions
from keras_gdrn.models._from_preset import from_preset, list_presets, save_to_preset
from keras_gdrn.models._graph import count_parameters, only_layer
from keras_gdrn.models._head import HEAD_INITIALIZERS, head_initializers
from keras_gdrn.models._preprocess import Preprocess
from keras_gdrn.models._transfer import (
    feature_extractor,
    with_classes,
    with_input_shape,
    with_preprocess,
    with_sigma0,
)

__all__ = [
    "ARCHITECTURES",
    "HEAD_INITIALIZERS",
    "SIX_SCALES",
    "Architecture",
    "Card",
    "Prediction",
    "Preprocess",
    "architecture",
    "classify",
    "count_parameters",
    "decode_predictions",
    "feature_extractor",
    "from_preset",
    "gauss_der_resnet",
    "head_initializers",
    "list_presets",
    "only_layer",
    "save_to_preset",
    "scale_channel",
    "with_classes",
    "with_input_shape",
    "with_preprocess",
    "with_sigma0",
]
