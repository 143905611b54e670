"""Responses of the last convolution at every position."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_gdrn.evaluation._test_data import as_classes, predictions
from keras_gdrn.layers import ScaleChannels, SpatialSelection
from keras_gdrn.models import (
    feature_extractor,
    only_layer,
    with_input_shape,
    with_sigma0,
)
from keras_gdrn.models._graph import image_shape


def activation_maps(
    model: keras.Model,
    images: Any,
    labels: Any,
    sigma0: Sequence[float] = (0.5, 1.0, 2.0),
    *,
    batch_size: int = 16,
) -> np.ndarray:
    """Responses of a scale channel's last convolution for the true class.

    At each position, this is the input of the `SpatialSelection` in the feature channel
    of the image's true class. It shows where, and at which scale, the network finds
    evidence for it. All scale channels share their weights, so any scale can be given.

    Source: Perzanowski & Lindeberg, the activation maps of Sec. "Visualisations of
    Gaussian derivative ResNets".

    Args:
        model: Functional model that applies one `ScaleChannels`, such as those of
            `gauss_der_resnet`, or a single scale channel. It is not changed.
        images: `(image, height, width, channel)`, also of another size than the
            model's.
        labels: Integers `(image,)` or `(image, 1)`, or rows `(image, class)`.
        sigma0: Initial scales σ_0 in pixels; they need not be the model's.
        batch_size: Images in a batch.

    Returns:
        A float32 array `(image, scale, height, width)`, with the scales in the order of
        `sigma0`.

    Raises:
        ValueError: If `model` is of another kind, `images` or `labels` do not fit it,
            or `ScaleChannels` refuses `sigma0`.

    Example:

    >>> activation_maps(model, images, labels, sigma0=[0.5, 1, 2]).shape
    (5, 3, 64, 64)
    """
    images = np.asarray(images)
    network = _network_of_maps(model, images, sigma0)
    maps = []
    for output, of_batch in predictions(network, (images, labels), batch_size):
        responses = np.asarray(output).astype("float32")
        classes = as_classes(of_batch, (len(responses), responses.shape[-1]))
        maps.append(responses[np.arange(len(classes)), ..., classes])
    return np.concatenate(maps)


def _network_of_maps(
    model: keras.Model, images: np.ndarray, sigma0: Sequence[float]
) -> keras.Model:
    """From images to `(batch, scale, *spatial, class)`."""
    expected = (None, *image_shape(model))
    if images.ndim != len(expected) or images.shape[-1] != expected[-1]:
        raise ValueError(
            f"`images` must have {len(expected)} dimensions and {expected[-1]} "
            f"channels, as the model's {expected}. "
            f"Received: images of shape {images.shape}"
        )
    if not any(isinstance(layer, ScaleChannels) for layer in model.layers):
        only_layer(model, SpatialSelection)
        model = keras.Sequential([model.inputs[0], ScaleChannels(model, sigma0)])
    model = with_sigma0(with_input_shape(model, images.shape[1:]), sigma0)
    network = only_layer(model, ScaleChannels).network
    selection = only_layer(network, SpatialSelection)
    if selection.data_format != "channels_last":
        raise ValueError(
            "`model` must be a network of `data_format='channels_last'`. Received: "
            f"`SpatialSelection` of data_format={selection.data_format!r}"
        )
    return feature_extractor(model, selection.input._keras_history.operation.name)
