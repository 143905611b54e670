"""Copies of functional models, to take graphs apart that others may share."""

from collections.abc import Callable
from typing import Any

import keras

from keras_gdrn.layers import ScaleChannels


def copy_by_layers(
    model: keras.Model,
    image: Any = None,
    *,
    of_network: Callable[[Any], Any] = lambda network: network,
) -> keras.Model:
    """A copy with the weights of `model`, layer by layer from the configurations.

    In it each layer is applied once, so that "its input" is one tensor; and the graphs
    of the model's own layers, which other models may share, stay untouched.

    Args:
        model: Functional model.
        image: Input tensor of the copy; by default one like the model's.
        of_network: What a `ScaleChannels` applies in the copy, given what it applies
            in the model; by default the same, which need not have a configuration.
    """

    def copied(layer):
        if isinstance(layer, ScaleChannels):
            return scale_channels_like(layer, network=of_network(layer.network))
        return type(layer).from_config(layer.get_config())

    copy = keras.models.clone_model(model, input_tensors=image, clone_function=copied)
    copy.set_weights(model.get_weights())
    return copy


def scale_channels_like(layer: ScaleChannels, **changes: Any) -> ScaleChannels:
    """The layer anew, with another network, other initial scales or windows."""
    options = {
        "network": layer.network,
        "sigma0": layer.sigma0,
        "receptive_field": layer.receptive_field,
        "subpixel": layer.subpixel,
        "tolerance": layer.tolerance,
        **changes,
    }
    kind = type(layer)  # a subclass stays one
    return kind(name=layer.name, dtype=layer.dtype_policy, **options)


def only_layer(model: keras.Model, kind: type) -> Any:
    """The one layer of a kind that a model applies, such as its `ScaleChannels`.

    Args:
        model: Model whose own layers are looked at, not those inside of them.
        kind: Class of the layer, or one that it is derived from.

    Returns:
        The layer.

    Raises:
        ValueError: If there is none, or more than one.

    Example:

    >>> only_layer(architecture("digits"), ScalePooling).mode
    'max'
    """
    own = getattr(model, "layers", ())
    layers = [layer for layer in own if isinstance(layer, kind)]
    if len(layers) != 1:
        raise ValueError(
            f"`model` must apply one `{kind.__name__}`. Received: a model "
            f"{getattr(model, 'name', model)!r} with {len(layers)} of them among its "
            "own layers"
        )
    return layers[0]
