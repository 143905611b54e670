"""The same weights at other scales or on images of another size."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_gdrn.layers import ScaleChannels

from ._copies import scale_channels_like


def with_sigma0(
    model: keras.Model,
    sigma0: Sequence[float],
    receptive_field: float | str | None = "kept",
) -> keras.Model:
    """The model with other scale channels; all weights are shared with `model`.

    Pre-training (A.4) trains a model with a single scale channel and goes on with
    several; denser inference (A.5) adds scale channels to a trained model.

    Args:
        model: Functional model that applies a `ScaleChannels`, such as those of
            `gauss_der_resnet`.
        sigma0: The new initial scales σ_0.
        receptive_field: How much of the maps is evaluated, as `ScaleChannels`: `None`
            for whole maps; `"kept"` for what the model has.

    Raises:
        ValueError: If `model` has no `ScaleChannels` layer, or an argument is refused
            by it. A single scale channel becomes a network by `ScaleChannels(channel,
            sigma0)`.
    """
    if not any(isinstance(layer, ScaleChannels) for layer in model.layers):
        raise ValueError(
            "`with_sigma0` takes a model that applies `ScaleChannels`; a single scale "
            "channel is wrapped by `ScaleChannels(channel, sigma0)`. "
            f"Received: model={model.name!r} with no such layer"
        )

    changes: dict[str, Any] = {"sigma0": sigma0}
    if receptive_field != "kept":
        changes["receptive_field"] = receptive_field

    def rescaled(layer):
        if isinstance(layer, ScaleChannels):
            return scale_channels_like(layer, **changes)
        return layer

    return _rebuilt(model, model.input_shape[1:], rescaled)


def with_input_shape(model: keras.Model, input_shape: tuple) -> keras.Model:
    """The model for images of another size; all weights are shared with `model`.

    Args:
        model: Functional model whose layers take any image size.
        input_shape: Shape of an image, `(*spatial, channels)`; sizes may be `None`.

    Raises:
        ValueError: If the number of dimensions or channels differs from the model's.
    """
    _check_same_kind(model, tuple(input_shape))

    def resized(layer):
        if isinstance(layer, ScaleChannels):
            network = layer.network
            if isinstance(network, keras.Model):
                network = with_input_shape(network, input_shape)
            return scale_channels_like(layer, network=network)
        return layer

    return _rebuilt(model, input_shape, resized)


def _rebuilt(model: keras.Model, input_shape, replace) -> keras.Model:
    (source,) = model.inputs
    image = keras.Input(tuple(input_shape), dtype=source.dtype, name=source.name)
    return keras.models.clone_model(model, input_tensors=image, clone_function=replace)


def _check_same_kind(model: keras.Model, input_shape: tuple) -> None:
    expected = tuple(model.input_shape[1:])
    if len(input_shape) != len(expected) or input_shape[-1] != expected[-1]:
        raise ValueError(
            f"`input_shape` must have {len(expected)} dimensions and {expected[-1]} "
            f"channels, as the model's {expected}. Received: input_shape={input_shape}"
        )
