"""Checks of arguments and input shapes that several layers share."""

import difflib

import keras

from keras_gdrn._checks import check_choice, check_keywords

# Arguments of Keras' convolutions that ours do not have, and what replaces them.
_ALTERNATIVES = {
    "strides": "the output always has the size of the input; twice the `sigma` in all "
    "later layers does what strides of 2 would",
    "kernel_size": "the size of the kernels is given by `sigma`",
    "padding": "the output always has the size of the input; `boundary` decides "
    "what lies around it",
    "dilation_rate": "a larger `sigma` has a larger receptive field",
    "groups": "`separable=True` filters each channel separately",
}

# Arguments that every Keras layer takes but no signature shows.
_OF_EVERY_LAYER = ("input_shape", "input_dim")


def check_no_convolution_options(layer: str, options: dict) -> None:
    """Refuses arguments of Keras' convolutions, and says what replaces them."""
    for name in options:
        for known in difflib.get_close_matches(name, _ALTERNATIVES, n=1, cutoff=0.8):
            received = {name: options[name]}
            reason = f"`{layer}` has no `{name}`: {_ALTERNATIVES[known]}"
            raise ValueError(f"{reason}. Received: {received}")


def check_options(layer: keras.layers.Layer, kind: type, options: dict) -> None:
    """Refuses keywords that neither this kind of layer nor every layer has."""
    options = {name: options[name] for name in options if name not in _OF_EVERY_LAYER}
    initializers = (kind.__init__, keras.layers.Layer.__init__)
    check_keywords(type(layer).__name__, options, *initializers)


def check_data_format(data_format: str | None) -> str:
    if data_format is None:
        return keras.config.image_data_format()
    return check_choice("data_format", data_format, ("channels_last", "channels_first"))


def cloned(initializer):
    """A copy, because one initializer draws the same values again and again."""
    if isinstance(initializer, keras.Initializer) and hasattr(initializer, "seed"):
        return initializer.clone()
    return initializer


def check_floating_point(layer: keras.layers.Layer) -> None:
    policy = layer.dtype_policy
    quantized = isinstance(policy, keras.dtype_policies.QuantizedDTypePolicy)
    if quantized or not keras.backend.is_float_dtype(layer.compute_dtype):
        received = policy.name if quantized else layer.compute_dtype
        raise ValueError(
            f"`{type(layer).__name__}` needs a floating point dtype. "
            f"Received: dtype={received!r}"
        )


def check_rank(layer: str, input_shape) -> None:
    if len(input_shape) - 2 not in (1, 2, 3):
        raise ValueError(
            f"`{layer}` takes inputs (batch, *spatial, channels) with one, two or "
            f"three spatial dimensions. Received: input_shape={tuple(input_shape)}"
        )
