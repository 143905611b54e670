"""The graph of a model: its layers and tensors, and copies with other layers."""

from collections.abc import Callable
from typing import Any

import keras

from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models._preprocess import Preprocess


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


def replace_layers(
    model: keras.Model,
    replace: Callable[[Any], Any],
    input_shape: tuple | None = None,
) -> keras.Model:
    """A model with each layer replaced, also those that its `ScaleChannels` apply.

    A layer that `replace` returns as it is shares its weights. Without an `input_shape`
    images are those of the model, and of each network that it applies.
    """

    def replaced(layer):
        if not isinstance(layer, ScaleChannels):
            if isinstance(layer, Preprocess):  # knows the shape that it was built for
                layer = Preprocess.from_config(layer.get_config())
            return replace(layer)
        network = layer.network
        if isinstance(network, keras.Model):
            # A layer before may have changed the number of channels.
            inner = input_shape and (*input_shape[:-1], image_shape(network)[-1])
            network = replace_layers(network, replace, inner)
        return scale_channels_like(layer, network=network)

    image = image_like(model, input_shape)
    return keras.models.clone_model(model, input_tensors=image, clone_function=replaced)


def scale_channels_like(layer: ScaleChannels, **changes: Any) -> ScaleChannels:
    """The layer anew, with another network, other initial scales or windows."""
    options = {
        "network": layer.network,
        "sigma0": layer.sigma0,
        "density": layer.density,
        "receptive_field": layer.receptive_field,
        "name": layer.name,
        "dtype": layer.dtype_policy,
    }
    return type(layer)(**options | changes)  # a subclass stays one


def with_input_of(model: keras.Model, layer: keras.layers.Layer) -> keras.Model:
    """The model, which gives what one of its layers is given before its own output."""
    image = image_like(model)
    output, tensors = tensors_of(model, image)
    return keras.Model(image, [tensors[layer.name][0], output])


def tensors_of(model: keras.Model, image: Any) -> tuple[Any, dict[str, tuple]]:
    """A model's output, and what each of its layers is given and gives, by its name.

    Anew for `image`, as the tensors of layers that models share are not one model's.
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
    """An input of the model's name and dtype, and shape unless another is given."""
    own = image_shape(model)
    shape = own if input_shape is None else input_shape
    if len(shape) != len(own) or shape[-1] != own[-1]:
        raise ValueError(
            f"`input_shape` must have {len(own)} dimensions and {own[-1]} channels, "
            f"the last of them, as the model's {own}. Received: input_shape={shape}"
        )
    (source,) = model.inputs
    # The tensor's own name is another one, unless the input was given a name.
    name = source._keras_history.operation.name
    return keras.Input(shape, dtype=source.dtype, name=name)
