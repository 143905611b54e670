"""The graph of a model: its layers and tensors, and copies with other layers."""

import math
from collections.abc import Callable
from typing import Any

import keras

from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models._preprocess import Preprocess


def only_layer(model: keras.Model, kind: type) -> Any:
    """Returns the one layer of a kind in a model, such as its `ScaleChannels`.

    Args:
        model: Model with the layer; layers inside other layers do not count.
        kind: Class of the layer, or a base class.

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
            f"`model` must apply one `{kind.__name__}`. Received: "
            f"model={getattr(model, 'name', model)!r} with {len(layers)} in `layers`"
        )
    return layers[0]


def replace_layers(
    model: keras.Model,
    replace: Callable[[Any], Any],
    input_shape: tuple | None = None,
) -> keras.Model:
    """A model with each layer replaced, including those inside its `ScaleChannels`.

    A layer that `replace` returns unchanged shares its weights. `input_shape` defaults
    to that of the model, and of each network that it applies.
    """

    def replaced(layer):
        if not isinstance(layer, ScaleChannels):
            if isinstance(layer, Preprocess):  # knows the shape that it was built for
                layer = Preprocess.from_config(layer.get_config())
            return replace(layer)
        network = layer.network
        if isinstance(network, keras.Model):
            # An earlier layer may have changed the number of channels.
            inner = input_shape and (*input_shape[:-1], image_shape(network)[-1])
            network = replace_layers(network, replace, inner)
        return scale_channels_like(layer, network=network)

    image = image_like(model, input_shape)
    return keras.models.clone_model(model, input_tensors=image, clone_function=replaced)


def scale_channels_like(layer: ScaleChannels, **changes: Any) -> ScaleChannels:
    """A new layer like `layer`, with another network, initial scales or windows."""
    options = {
        "network": layer.network,
        "sigma0": layer.sigma0,
        "density": layer.density,
        "receptive_field": layer.receptive_field,
        "name": layer.name,
        "dtype": layer.dtype_policy,
    }
    return type(layer)(**options | changes)  # a subclass stays one


def also_returning_input_of(
    model: keras.Model, layer: keras.layers.Layer
) -> keras.Model:
    """The model, with the input of one of its layers as a first output."""
    image = image_like(model)
    output, tensors = tensors_of(model, image)
    return keras.Model(image, [tensors[layer.name][0], output])


def tensors_of(model: keras.Model, image: Any) -> tuple[Any, dict[str, tuple]]:
    """A model's output, and the input and output of each of its layers, by its name.

    Computed anew for `image`, as layers may be shared with other models.
    """
    found = {}

    def recorded(layer):
        def call(*args, **kwargs):
            output = layer(*args, **kwargs)
            found[layer.name] = args[0] if args else None, output
            return output

        return call

    graph = model._functional if isinstance(model, keras.Sequential) else model
    output = graph._run_through_graph([image], operation_fn=recorded)
    return output, found


def count_parameters(model: keras.Model) -> int:
    """Count the trainable parameters of a model, as the paper does.

    Args:
        model: A built model.

    Returns:
        The number of trainable parameters.
    """
    return sum(math.prod(weight.shape) for weight in model.trainable_weights)


def image_shape(model: keras.Model) -> tuple:
    inputs = getattr(model, "inputs", None) or []
    if len(inputs) != 1:
        raise ValueError(
            "`model` must be a functional model with one input, as "
            "`keras.Model(image, scores)` makes it. "
            f"Received: model={model!r} of type {type(model).__name__}"
        )
    return tuple(inputs[0].shape[1:])


def image_like(model: keras.Model, input_shape: tuple | None = None) -> Any:
    """An input of the model's name and dtype, and by default its shape."""
    own = image_shape(model)
    shape = own if input_shape is None else input_shape
    if len(shape) != len(own) or shape[-1] != own[-1]:
        raise ValueError(
            f"`input_shape` must have {len(own)} dimensions and end in {own[-1]} "
            f"channels, as the model's {own}. Received: input_shape={shape}"
        )
    (source,) = model.inputs
    # The tensor has another name, unless the input was named.
    name = source._keras_history.operation.name
    return keras.Input(shape, dtype=source.dtype, name=name)
