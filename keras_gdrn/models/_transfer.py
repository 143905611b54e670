"""Models with shared weights: other scales, image sizes, classes, or a part."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras

from keras_gdrn._checks import check_input_shape, check_positive_integer
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.models._graph import (
    image_like,
    only_layer,
    replace_layers,
    scale_channels_like,
    tensors_of,
)
from keras_gdrn.models._head import head_initializers
from keras_gdrn.models._preprocess import Preprocess


def with_sigma0(
    model: keras.Model,
    sigma0: Sequence[float],
    density: float | str | None = "unchanged",
    receptive_field: float | str | None = "unchanged",
) -> keras.Model:
    """The model with other scale channels; all weights are shared with `model`.

    Pre-training (Appendix A.4) trains a model with a single scale channel, then with
    several; denser inference (A.5) adds scale channels to a trained model.

    Args:
        model: Functional model that applies a `ScaleChannels`, such as those of
            `gauss_der_resnet`.
        sigma0: The new initial scales σ_0.
        density, receptive_field: As `ScaleChannels`; by default the model's own.

    Returns:
        Functional model like `model`, with these scale channels.

    Raises:
        ValueError: If `model` has no `ScaleChannels`, or it refuses an argument. Wrap a
            single scale channel in `ScaleChannels(channel, sigma0)` instead.
    """
    image = image_like(model)
    if not any(isinstance(layer, ScaleChannels) for layer in model.layers):
        raise ValueError(
            "`model` must apply `ScaleChannels`: wrap a single scale channel in "
            "`ScaleChannels(channel, sigma0)`. "
            f"Received: model={model.name!r} with no such layer"
        )
    given = {"density": density, "receptive_field": receptive_field}
    changes = {name: value for name, value in given.items() if value != "unchanged"}

    def rescaled(layer):
        if isinstance(layer, ScaleChannels):
            return scale_channels_like(layer, sigma0=sigma0, **changes)
        return layer

    return keras.models.clone_model(model, input_tensors=image, clone_function=rescaled)


def with_input_shape(model: keras.Model, input_shape: tuple) -> keras.Model:
    """The model for images of another size; all weights are shared with `model`.

    Initial scales stay as they are, in pixels: it recognizes objects of the same sizes
    in pixels. For others, see `with_sigma0`.

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


def with_dtype(model: keras.Model, dtype: Any) -> keras.Model:
    """A copy of the model, with another dtype policy of its scale channels."""
    layer, policy = only_layer(model, ScaleChannels), keras.dtype_policies.get(dtype)

    def with_policy(inner):
        return type(inner).from_config({**inner.get_config(), "dtype": policy})

    network = replace_layers(layer.network, with_policy)
    network.set_weights(layer.network.get_weights())
    channels = scale_channels_like(layer, network=network, dtype=policy)
    return keras.models.clone_model(
        model,
        input_tensors=image_like(model),
        clone_function=lambda own: channels if own is layer else own,
    )


def with_classes(model: keras.Model, classes: int | Sequence[str]) -> keras.Model:
    """The model for other classes: a new last layer, and all others shared.

    Args:
        model: Functional model that applies one `ScaleChannels` to a functional model
            whose last `GaussDerConv` has a map for each class, such as those of
            `from_preset` and `gauss_der_resnet`.
        classes: Number of classes, or their names, which its `Preprocess` then has.

    Returns:
        Functional model like `model`, with a last layer initialized by
        `head_initializers`.

    Raises:
        ValueError: If `model` is of another kind, or there is no class.

    Example:

    >>> with_classes(from_preset("digits"), ["disc", "square"]).output_shape
    (None, 2)
    """
    names = tuple(classes) if isinstance(classes, Iterable) else ()
    if isinstance(classes, str) or len({*names}) < len(names):
        raise ValueError(
            "`classes` must be a number, or names that differ from one another. "
            f"Received: classes={classes!r}"
        )
    count = check_positive_integer("classes", len(names) or classes)
    head = _head(model)
    if model.output_shape[-1] != head.filters:
        raise ValueError(
            "`with_classes` replaces the last `GaussDerConv`, which must have a map "
            f"for each class. Received: a model with {model.output_shape[-1]} scores "
            f"after {head.filters} maps of the layer {head.name!r}"
        )

    def for_classes(layer):
        if layer is head:
            initializers = head_initializers(zero_order=head.zero_order)
            config = {**head.get_config(), "filters": count, **initializers}
            return type(head).from_config(config)
        if isinstance(layer, Preprocess):
            return Preprocess.from_config({**layer.get_config(), "class_names": names})
        return layer

    return replace_layers(model, for_classes)


def with_preprocess(model: keras.Model, preprocess: Preprocess) -> keras.Model:
    """The model with a `Preprocess` as first layer; all weights are shared.

    Args:
        model: Functional model that takes images with values of 0 to 1.
        preprocess: The layer, which replaces the model's own if it has one.

    Returns:
        Functional model like `model` that also takes images with values of 0 to 255.

    Raises:
        ValueError: If `model` is not functional, or has more than one input.

    Example:

    >>> network = gauss_der_resnet((64, 64, 3), 2, [16, 32], 1.2, sigma0=[0.5, 1, 2])
    >>> with_preprocess(network, Preprocess(["cat", "dog"], 32)).layers[1].name
    'preprocess'
    """
    image = image_like(model)
    preprocess = type(preprocess).from_config(preprocess.get_config())  # not yet built
    if any(isinstance(layer, Preprocess) for layer in model.layers):
        return replace_layers(
            model, lambda x: preprocess if isinstance(x, Preprocess) else x
        )
    scores, _ = tensors_of(model, preprocess(image))
    return keras.Model(image, scores, name=model.name)


def feature_extractor(model: keras.Model, layer: str) -> keras.Model:
    """A model that returns a layer's output at each scale; all weights are shared.

    Args:
        model: Functional model that applies one `ScaleChannels` to a functional model,
            such as those of `gauss_der_resnet`.
        layer: Name of a layer of the scale channel, such as `"block2"`.

    Returns:
        Functional model from images to `(batch, scale, *spatial, channels)`, or to
        `(batch, scale, …)` for a layer after the spatial selection. Maps are whole,
        whatever the `receptive_field` of the model. `with_sigma0` and
        `with_input_shape` change its scales and sizes.

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


def _head(model: keras.Model) -> GaussDerConv:
    network = only_layer(model, ScaleChannels).network
    inner = getattr(network, "layers", [])
    found = [layer for layer in inner if isinstance(layer, GaussDerConv)]
    if not found or found[-1].filters != network.output_shape[-1]:
        raise ValueError(
            "`model` must apply `ScaleChannels` to a network whose last `GaussDerConv` "
            f"has a map for each class. Received: a model {model.name!r} whose network "
            f"{network.name!r} has none"
        )
    return found[-1]
