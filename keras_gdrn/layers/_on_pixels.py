"""Runs a network as the paper does: whole maps on the pixels, kernels of `σ_0 σ`."""

import inspect
from typing import Any

import keras
from keras import ops

from keras_gdrn._checks import check_reach
from keras_gdrn.layers._calls import (
    Call,
    UnsupportedLayer,
    Value,
    calls_of,
    is_derivative_layer,
    training_argument,
)


class OnPixels:
    """One evaluation of a network on whole maps, all scale channels in one batch.

    A layer whose `call` has an argument `scales` receives the initial scales. Its input
    batch holds the maps of one scale after those of another.

    Args:
        network: Layer or model with one input and one output.
        input_shape: Shape of the images; sizes may be unknown.

    Raises:
        UnsupportedLayer: If the network cannot be traced.
    """

    def __init__(self, network, input_shape: tuple):
        image = keras.KerasTensor((None, *input_shape[1:]), network.compute_dtype)
        self.source = Value(image, is_map=True, on_pixels=True)
        self.calls, self.result = calls_of(network, self.source)
        for call in self.calls:
            if is_derivative_layer(call.layer) and not _takes_scales(call):
                raise UnsupportedLayer(
                    f"its layer {call.layer.name!r} of type {type(call.layer).__name__}"
                    " has a `call` without the argument `scales`"
                )

    def check_sizes(self, scales: tuple[float, ...]) -> None:
        """Refuses scales far beyond the maps."""
        for call in self.calls:
            if call.convolutions:
                spatial = list(call.inputs[0].tensor.shape[1:])
                channels_last = call.layer.data_format == "channels_last"
                del spatial[-1 if channels_last else 0]
                check_reach(max(scales) * call.layer.sigma, tuple(spatial))

    def __call__(self, images, scales: tuple[float, ...], training: bool | None):
        """`(scale * batch, …)`."""
        values: dict[Value, Any] = {
            self.source: ops.concatenate([images] * len(scales))
        }

        def argument(leaf):
            return values[leaf] if isinstance(leaf, Value) else leaf

        for call in self.calls:
            args, kwargs = keras.tree.map_structure(argument, (call.args, call.kwargs))
            kwargs |= training_argument(call.layer, call.training_mode(training))
            if _takes_scales(call):
                kwargs["scales"] = scales
            values[call.output] = call.layer(*args, **kwargs)
        return values[self.result]


def _takes_scales(call: Call) -> bool:
    return "scales" in inspect.signature(call.layer.call).parameters
