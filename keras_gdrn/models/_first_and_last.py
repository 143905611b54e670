"""The same network with another first layer, or another last one."""

from collections.abc import Sequence

import keras

from keras_gdrn._checks import check_positive_integer, is_integer
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.models._copies import only_layer
from keras_gdrn.models._head import head_initializers
from keras_gdrn.models._preprocess import Preprocess
from keras_gdrn.models._transfer import image_like, replace_layers, tensors_of


def with_classes(model: keras.Model, classes: int | Sequence[str]) -> keras.Model:
    """The model for other classes: the last layer begins anew, and others are shared.

    Args:
        model: Functional model that applies one `ScaleChannels` to a functional model
            whose last `GaussDerConv` has a map for each class, such as those of
            `from_preset` and `gauss_der_resnet`.
        classes: Number of classes, or their names, which its `Preprocess` then has.

    Returns:
        Functional model like `model`, with a last layer that begins as
        `head_initializers` says.

    Raises:
        ValueError: If `model` is of another kind, or there is no class.

    Example:

    >>> with_classes(from_preset("digits"), ["disc", "square"]).output_shape
    (None, 2)
    """
    names = () if is_integer(classes) else tuple(classes)  # type: ignore[arg-type]
    count = check_positive_integer("classes", len(names) or classes)
    head = _head(model)

    def for_classes(layer):
        if layer is head:
            begin = head_initializers(zero_order=head.zero_order)
            config = {**head.get_config(), "filters": count, **begin}
            return type(head).from_config(config)
        if isinstance(layer, Preprocess):
            return Preprocess.from_config({**layer.get_config(), "class_names": names})
        return layer

    return replace_layers(model, for_classes)


def with_preprocess(model: keras.Model, preprocess: Preprocess) -> keras.Model:
    """The model with a `Preprocess` before all else; all weights are shared with it.

    Args:
        model: Functional model that takes images with values of 0 to 1.
        preprocess: The layer, instead of the model's own if it has one.

    Returns:
        Functional model like `model`, that takes images of 0 to 255 too.

    Raises:
        ValueError: If `model` is not functional, or has more than one input.

    Example:

    >>> network = gauss_der_resnet((64, 64, 3), 2, [16, 32], 1.2, sigma0=[0.5, 1, 2])
    >>> with_preprocess(network, Preprocess(["cat", "dog"], 32)).layers[1].name
    'preprocess'
    """
    image = image_like(model)
    if any(isinstance(layer, Preprocess) for layer in model.layers):
        return replace_layers(
            model, lambda x: preprocess if isinstance(x, Preprocess) else x
        )
    scores, _ = tensors_of(model, preprocess(image))
    return keras.Model(image, scores, name=model.name)


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
