"""What the last convolution answers at every position."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import numpy as np

from keras_gdrn.evaluation._test_data import as_classes, predictions
from keras_gdrn.layers import ScaleChannels, SpatialSelection
from keras_gdrn.models._copies import copy_by_layers, only_layer


def activation_maps(
    model: keras.Model,
    images: Any,
    labels: Any,
    sigma0: Sequence[float] = (0.5, 1.0, 2.0),
    *,
    batch_size: int = 16,
) -> np.ndarray:
    """Responses of a scale channel's last convolution for the true class.

    At each position the input of the `SpatialSelection`, in the feature channel of the
    image's own class: where, and at which scale, the network finds what speaks for it.
    All scale channels share their weights, so that any initial scale can be asked for.

    Source: Perzanowski & Lindeberg, the activation maps of Sec. "Visualisations of
    Gaussian derivative ResNets".

    Args:
        model: Functional model that applies one `ScaleChannels`, such as those of
            `gauss_der_resnet`, or a single scale channel. It is copied layer by layer,
            by their configurations, and itself stays as it was.
        images: `(image, height, width, channel)`, also of another size than the
            model's.
        labels: Integers `(image,)` or `(image, 1)`, or rows `(image, class)`.
        sigma0: Initial scales σ_0 in pixels; they need not be the model's.
        batch_size: Images that are computed at once.

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
    _check_functional(model)
    _check_images(images, model.input_shape)
    network = _network_of_maps(model, images.shape[1:-1], sigma0)
    maps = []
    for output, of_batch in predictions(network, (images, labels), batch_size):
        responses = np.asarray(output).astype("float32")
        classes = as_classes(of_batch, (len(responses), responses.shape[-1]))
        maps.append(responses[np.arange(len(classes)), ..., classes])
    return np.concatenate(maps)


def _network_of_maps(
    model: keras.Model, sizes: tuple, sigma0: Sequence[float]
) -> keras.Model:
    """From images to `(batch, scale, *spatial, class)`, with a graph of its own."""
    whole = any(isinstance(layer, ScaleChannels) for layer in model.layers)
    only_layer(model, ScaleChannels if whole else SpatialSelection)
    copy = _resized(model, sizes)
    image, network = copy.inputs[0], copy
    if whole:
        channels = only_layer(copy, ScaleChannels)
        image, network = channels.input, channels.network
    selection = only_layer(network, SpatialSelection)
    if selection.data_format != "channels_last":
        raise ValueError(
            "`model` must be a network of `data_format='channels_last'`. Received: "
            f"`SpatialSelection` of data_format={selection.data_format!r}"
        )
    maps = keras.Model(network.input, selection.input)
    return keras.Model(copy.input, ScaleChannels(maps, sigma0)(image))


def _resized(model: keras.Model, sizes: tuple) -> keras.Model:
    """A copy for images of these sizes."""
    _check_functional(model)
    (source,) = model.inputs
    image = keras.Input((*sizes, source.shape[-1]), dtype=source.dtype)
    return copy_by_layers(model, image, of_network=partial(_resized, sizes=sizes))


def _check_functional(model: Any) -> None:
    if not getattr(model, "inputs", None):
        raise ValueError(
            "`model`, and the network that its `ScaleChannels` applies, must be "
            f"functional models. Received: {model!r}"
        )


def _check_images(images: np.ndarray, expected: tuple) -> None:
    if images.ndim != len(expected) or images.shape[-1] != expected[-1]:
        raise ValueError(
            f"`images` must have {len(expected)} dimensions and {expected[-1]} "
            f"channels, as the model's {expected}. "
            f"Received: images of shape {images.shape}"
        )
