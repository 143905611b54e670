"""Layers that others look for in a model."""

from typing import Any

import keras

from keras_gdrn.layers import ScaleChannels


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
