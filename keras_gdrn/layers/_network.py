"""The network that `ScaleChannels` applies: its layers, its input and its output."""

import keras

from keras_gdrn.layers._calls import is_derivative_layer


def check_single_output(outputs, network) -> None:
    """Refuses several outputs, if they are known yet."""
    count = len(keras.tree.flatten(outputs)) if outputs is not None else 1
    if count != 1:
        raise ValueError(
            "`network` must have one output: make a `ScaleChannels` for each, of "
            "`keras.Model(network.inputs, network.outputs[i])`, which share their "
            f"weights. Received: network={network.name!r} with {count} outputs"
        )


def contains(network, kind: type) -> bool:
    """Whether the network, or a layer anywhere in it, is of this kind."""
    return any(isinstance(layer, kind) for layer in network._flatten_layers())


def check_takes(network, input_shape: tuple) -> None:
    """Refuses inputs of another rank or number of channels than it was built for."""
    expected = _built_for(network, len(input_shape))
    pairs = zip(expected, input_shape, strict=False)
    takes = [None in (known, given) or known == given for known, given in pairs]
    channels_first = _channels_first(network)
    channels = takes[1 if channels_first else -1]
    if len(expected) != len(input_shape) or not channels:
        raise ValueError(
            f"`network` was built for inputs of shape {expected}: others must have "
            "as many dimensions and channels. "
            f"Received: network={network.name!r}, input_shape={input_shape}"
        )


def _built_for(network, rank: int) -> tuple:
    """Shape of the inputs of a network that has been built, as far as it is known."""
    shape = getattr(network, "input_shape", None)  # a model's
    if shape is not None:
        return shape
    spec = keras.tree.flatten(network.input_spec or keras.InputSpec())[0]
    rank = spec.ndim or rank
    sizes = {axis % rank: size for axis, size in spec.axes.items()}
    return tuple(sizes.get(axis) for axis in range(rank))


def build_shape(network, input_shape: tuple) -> tuple:
    """The shape to build with, without sizes if the layer would refuse a large σ."""
    if not is_derivative_layer(network):
        return input_shape
    unknown = (None,) * (len(input_shape) - 2)
    if _channels_first(network):
        return (*input_shape[:2], *unknown)
    return (input_shape[0], *unknown, input_shape[-1])


def _channels_first(network) -> bool:
    found = (getattr(layer, "data_format", None) for layer in network._flatten_layers())
    return "channels_first" in found


def serialized(network) -> dict:
    """The network's configuration, marked as shared when Keras saves it to a file.

    Keras sets the mark when it serializes an object for the second time. This happens
    here at once, because this configuration is copied before the next time.
    """
    config = keras.saving.serialize_keras_object(network)
    keras.saving.serialize_keras_object(network)
    return config
