"""The same weights at other scales, on images of another size, or up to a layer."""

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_gdrn._checks import check_input_shape
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models._copies import only_layer, scale_channels_like
from keras_gdrn.models._preprocess import Preprocess


def with_sigma0(
    model: keras.Model,
    sigma0: Sequence[float],
    receptive_field: float | str | None = "kept",
    subpixel: bool | str = "kept",
    tolerance: float | str | None = "kept",
) -> keras.Model:
    """The model with other scale channels; all weights are shared with `model`.

    Pre-training (Appendix A.4) trains a model with a single scale channel and goes on
    with several; denser inference (A.5) adds scale channels to a trained model.

    Args:
        model: Functional model that applies a `ScaleChannels`, such as those of
            `gauss_der_resnet`.
        sigma0: The new initial scales σ_0.
        receptive_field: How much of the maps is evaluated, as `ScaleChannels`: `None`
            for whole maps; `"kept"` for what the model has.
        subpixel: Whether channels with `σ_0 < 1` look between the pixels, as
            `ScaleChannels`; `"kept"` for what the model does.
        tolerance: How exactly the maps are evaluated, as `ScaleChannels`; `"kept"` for
            what the model has.

    Returns:
        Functional model like `model`, with these scale channels.

    Raises:
        ValueError: If `model` has no `ScaleChannels` layer, or an argument is refused
            by it. A single scale channel becomes a network by `ScaleChannels(channel,
            sigma0)`.
    """
    image = image_like(model)
    if not any(isinstance(layer, ScaleChannels) for layer in model.layers):
        raise ValueError(
            "`with_sigma0` takes a model that applies `ScaleChannels`; a single scale "
            "channel is wrapped by `ScaleChannels(channel, sigma0)`. "
            f"Received: model={model.name!r} with no such layer"
        )
    given = {
        "receptive_field": receptive_field,
        "subpixel": subpixel,
        "tolerance": tolerance,
    }
    changes = {name: value for name, value in given.items() if value != "kept"}

    def rescaled(layer):
        if isinstance(layer, ScaleChannels):
            return scale_channels_like(layer, sigma0=sigma0, **changes)
        return layer

    return _rebuilt(model, image, rescaled)


def with_input_shape(model: keras.Model, input_shape: tuple) -> keras.Model:
    """The model for images of another size; all weights are shared with `model`.

    Args:
        model: Functional model whose layers take any image size.
        input_shape: Shape of an image, `(*spatial, channels)`; sizes may be `None`.

    Returns:
        Functional model like `model`, for images of this shape.

    Raises:
        ValueError: If the number of dimensions or channels differs from the model's.
    """
    shape = check_input_shape(input_shape)
    return replace_layers(model, lambda layer: layer, shape)


def replace_layers(
    model: keras.Model,
    replace: Callable[[Any], Any],
    input_shape: tuple | None = None,
) -> keras.Model:
    """A model with each layer replaced, also those that its `ScaleChannels` apply.

    Args:
        model: Functional model with one input.
        replace: What stands for a layer, given it; the layer itself shares its weights.
        input_shape: Shape of an image; by default the model's, and that of each
            network that it applies.
    """
    if input_shape is not None:
        _check_same_kind(model, input_shape)

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

    return _rebuilt(model, image_like(model, input_shape), replaced)


def feature_extractor(model: keras.Model, layer: str) -> keras.Model:
    """What a layer of the scale channels gives at each scale; all weights are shared.

    Args:
        model: Functional model that applies one `ScaleChannels` to a functional model,
            such as those of `gauss_der_resnet`.
        layer: Name of a layer of the scale channel, such as `"block2"`.

    Returns:
        Functional model from images to `(batch, scale, *spatial, channels)`, or to
        `(batch, scale, …)` of a layer behind the spatial selection. Maps are whole
        ones, whatever the `receptive_field` of the model. `with_sigma0` and
        `with_input_shape` take it to other scales and sizes.

    Raises:
        ValueError: If `model` is of another kind, or has no such layer.

    Example:

    >>> model = architecture("rescaled_cifar10")
    >>> feature_extractor(model, "block2").output_shape
    (None, 6, 64, 64, 64)
    """
    channels = only_layer(model, ScaleChannels)
    inner = getattr(channels.network, "layers", [])
    names = [x.name for x in inner if not isinstance(x, keras.layers.InputLayer)]
    if layer not in names:
        raise ValueError(
            "`layer` must be the name of a layer that `ScaleChannels` applies, one of "
            f"{names}. Received: layer={layer!r}"
        )
    inside = image_like(channels.network)
    _, features = tensors_of(channels.network, inside)[1][layer]
    name = f"{channels.network.name}_{layer}"
    network = keras.Model(inside, features, name=name)
    applied = scale_channels_like(channels, network=network, receptive_field=None)
    image = image_like(model)
    given, _ = tensors_of(model, image)[1][channels.name]
    return keras.Model(image, applied(given), name=f"{model.name}_{channels.name}")


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


def _rebuilt(model: keras.Model, image: Any, replace: Callable) -> keras.Model:
    return keras.models.clone_model(model, input_tensors=image, clone_function=replace)


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
    input_shape = input_shape or image_shape(model)
    (source,) = model.inputs
    # The tensor's own name is another one, unless the input was given a name.
    name = source._keras_history.operation.name
    return keras.Input(tuple(input_shape), dtype=source.dtype, name=name)


def _check_same_kind(model: keras.Model, input_shape: tuple) -> None:
    expected = image_shape(model)
    if len(input_shape) != len(expected) or input_shape[-1] != expected[-1]:
        raise ValueError(
            f"`input_shape` must have {len(expected)} dimensions and {expected[-1]} "
            f"channels, the last of them, as the model's {expected}. "
            f"Received: input_shape={input_shape}"
        )
