"""A network as the calls of its layers, which are evaluated at several scales."""

import keras

from keras_gdrn._checks import check_reach
from keras_gdrn.layers._calls import (
    Call,
    UnsupportedLayer,
    Value,
    calls_of,
    is_derivative_layer,
)
from keras_gdrn.layers._pointwise import acts_at_each_position
from keras_gdrn.layers.gauss_der_conv import GaussDerConv
from keras_gdrn.layers.gauss_der_residual_block import GaussDerResidualBlock
from keras_gdrn.layers.spatial_selection import SpatialSelection

_PACKAGE_LAYERS = (GaussDerConv, GaussDerResidualBlock, SpatialSelection)
ON_PIXELS = ". `density=None` evaluates it on the pixels"


class Network:
    """The calls of a network for images of one shape.

    Raises `UnsupportedLayer`, or a `ValueError` for a layer wider than its maps.
    """

    def __init__(self, network, input_shape, scales, density: float | None):
        self.rank = len(input_shape)
        image = keras.KerasTensor((None, *input_shape[1:]), network.compute_dtype)
        self.source = Value(image, is_map=True, on_pixels=True)
        self.calls, self.result = calls_of(network, self.source)
        self.values = [self.source, *(call.output for call in self.calls)]
        self.channels_first = self._data_format() == "channels_first"
        self.channel_axis = 1 if self.channels_first else self.rank - 1
        self._check(on_grids=density is not None)
        for call in self.calls:
            if call.convolutions:
                name, sigma, most = call.layer.name, call.layer.sigma, max(scales)
                where = f"layer {name!r} has {sigma:g}, times sigma0={most:g}"
                check_reach(most * sigma, self.positions(call.maps[0]), where)

    @property
    def boundary(self) -> str:
        """What lies beyond the edges of the images."""
        first = next(call.layer for call in self.calls if call.convolutions)
        return getattr(first, "conv1", first).boundary

    def positions(self, value: Value) -> tuple[int, ...]:
        """The sizes of a map in the network itself."""
        shape = list(value.tensor.shape[1:])
        del shape[self.channel_axis - 1]
        return tuple(shape)

    def is_pointwise(self, call: Call) -> bool:
        axes = self.rank, self.channel_axis
        return acts_at_each_position(call.layer, call.args, *axes)

    def looks_around(self, call: Call) -> bool:
        """Whether a layer that is not known may combine positions of a map."""
        known = call.convolutions or call.is_spatial_selection
        return bool(call.maps) and not known and not self.is_pointwise(call)

    def _data_format(self) -> str:
        layers = (call.layer for call in self.calls)
        ours = [layer for layer in layers if isinstance(layer, _PACKAGE_LAYERS)]
        for layer in ours:
            if layer.data_format != ours[0].data_format:
                reason = f"has data_format={layer.data_format!r}, unlike the first"
                raise UnsupportedLayer(reason, layer)
        return ours[0].data_format if ours else "channels_last"

    def _check(self, on_grids: bool) -> None:
        advice = ON_PIXELS if on_grids else ""
        ours = [c for c in self.calls if is_derivative_layer(c.layer)]
        if not (ours or (not on_grids and any(c.takes_sigma0 for c in self.calls))):
            raise UnsupportedLayer(f"has no Gaussian derivative layer{advice}")
        for call in self.calls:
            reason = self._fault_on_grids(call) if on_grids else _fault_on_pixels(call)
            if reason is not None:
                raise UnsupportedLayer(reason + advice, call.layer)

    def _fault_on_grids(self, call: Call) -> str | None:
        if not call.maps:
            return "receives no map of an image" if call.convolutions else None
        if call.convolutions:
            return None
        if is_derivative_layer(call.layer):
            return "has a `call` of its own: what it does on a grid is not known"
        maps = [*call.maps, call.output] if call.output.is_map else call.maps
        if len(sizes := {*map(self.positions, maps)}) > 1:
            return (
                f"changes the size of its maps ({' and '.join(map(str, sizes))}); "
                "instead of strides or pooling, double `sigma` in all later layers"
            )
        if getattr(call.layer, "renorm", False):
            return "has `renorm=True`, without statistics of all scales together"
        on_pixels = all(value.on_pixels for value in call.maps)
        if on_pixels and not self.is_pointwise(call):
            return (
                "stands before the first `GaussDerConv`, and is not known to act on "
                "each pixel separately: put it in front of `ScaleChannels`, or give "
                "its class the attribute `acts_at_each_position = True`"
            )
        return None


def _fault_on_pixels(call: Call) -> str | None:
    missing = is_derivative_layer(call.layer) and not call.takes_sigma0
    return "has a `call` without the argument `sigma0`" if missing else None
