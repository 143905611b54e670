"""Chooses the grid on which each map of a network is evaluated.

A scale channel is the network on a grid whose step is its initial scale: by scale
covariance `Γ_{σ_0}(f)(x) = Γ_1(f(σ_0 ·))(x / σ_0)`. So all lengths here are in units of
the initial scale, and a plan is the same for all scale channels.

Each map has the largest step that the layers around it allow: the smallest of their
scales over the density. If the network ends in central selection, a map is a window
around the center, within the windows that it is computed from. The influence of its
positions on the scores (the effective receptive field) is, to first order, a Gaussian.
Its variance is the sum of the squared scales of the layers that follow; the last layer
counts twice.
"""

import math
import warnings

import keras

from keras_gdrn._checks import check_reach
from keras_gdrn.layers._calls import (
    Call,
    UnsupportedLayer,
    Value,
    calls_of,
    is_derivative_layer,
    maps_with_peaks,
)
from keras_gdrn.layers._grid import Grid, covering
from keras_gdrn.layers._pointwise import acts_at_each_position
from keras_gdrn.layers.gauss_der_conv import GaussDerConv
from keras_gdrn.layers.gauss_der_residual_block import GaussDerResidualBlock
from keras_gdrn.layers.spatial_selection import SpatialSelection

Group = tuple[float, ...]  # initial scales

_OURS = (GaussDerConv, GaussDerResidualBlock, SpatialSelection)
# Points that a group of scale channels may add to its maps, as a share of all points.
_MOST_ADDED = 1 / 6

_ON_PIXELS = ". `density=None` evaluates it on the pixels"


class Plan:
    """The calls of a network, and the grids of its maps.

    Its arguments are those of `ScaleChannels`. It refuses an `UnsupportedLayer`, and
    scales beyond the maps.
    """

    def __init__(self, network, input_shape, scales: Group, density, receptive_field):
        self.scales, self.density, self.rank = scales, density, len(input_shape)
        image = keras.KerasTensor((None, *input_shape[1:]), network.compute_dtype)
        self.source = Value(image, is_map=True, on_pixels=True)
        self.calls, self.result = calls_of(network, self.source)
        channels_first = self._format() == "channels_first"
        self.channel_axis = 1 if channels_first else self.rank - 1
        self.moves_channels = channels_first and density is not None
        self.spatial = self._positions(self.source)
        self.central = False
        self._check(network)
        for call in self.calls:
            if call.convolutions:
                reach = max(scales) * call.layer.sigma
                check_reach(reach, self._positions(call.maps[0]))
        if density is None:
            return
        searched = maps_with_peaks(self.calls)
        self._sigma = self._smallest_scales(searched)
        self.central = bool(receptive_field) and not (searched or self.result.is_map)
        self.apart = [scales] if self.central else [(scale,) for scale in scales]
        self.groups = self._grouped()
        self._windows: dict[Value, Grid] = {}
        self._middles: dict[Value, Grid] = {}  # within the blocks of these outputs
        if self.central:
            self._cut_windows(receptive_field)
        for call in self.calls if None not in self.spatial else []:
            if call.maps and not (call.selects or call.output.is_map):
                self._check_size(call)

    @property
    def boundary(self) -> str:
        """What lies beyond the edges of the images."""
        first = next(call.layer for call in self.calls if call.convolutions)
        return getattr(first, "conv1", first).boundary

    def step(self, value: Value) -> float:
        """Between the points of a map, in units of the initial scale."""
        return self._sigma[value] / self.density

    def _grouped(self) -> list[Group]:
        """Scale channels with equal grids, which are one batch.

        On windows these are all. On whole maps they are neighbors, as long as it adds
        few points: the grids of the finest cover the image, those of the others more.
        """
        groups = list(self.apart)
        if not all(map(self._may_see_more, self.calls)):
            return groups

        def points(group: Group) -> list[float]:
            return [scale ** -len(self.spatial) for scale in group]

        most = _MOST_ADDED * sum(points(self.scales))
        for k in reversed(range(len(groups) - 1)):
            both = groups[k] + groups[k + 1]
            if len(both) * max(points(both)) - sum(points(both)) <= most:
                groups[k : k + 2] = [both]
        return groups

    def grids(self, value: Value, spatial, groups: list[Group]) -> list[Grid]:
        """Grids of a map, one for each group of scale channels.

        Where maps are no windows, they depend on the sizes of the images.
        """
        if self.central:
            return [self._windows[value]]
        return [covering(spatial, min(group), self.step(value)) for group in groups]

    def middles(self, call: Call, leaving: list[Grid]) -> list[Grid]:
        """Grids of the map between the two convolutions of a residual block."""
        return [self._middles[call.output]] if self.central else leaving

    def _check_size(self, call: Call) -> None:
        """Refuses a layer whose output has another size on grids."""
        value, expected = call.maps[0], tuple(call.output.tensor.shape)
        channels = value.tensor.shape[self.channel_axis]
        for grid in self.grids(value, self.spatial, self.apart):
            shape = [None, *grid.sizes]
            shape.insert(self.channel_axis, channels)
            got = tuple(call.layer.compute_output_shape(tuple(shape)))
            if got != expected:
                raise UnsupportedLayer(
                    f"returns {expected[1:]} for the image and {got[1:]} for a grid of "
                    f"{grid.sizes} points: use `SpatialSelection` or a global pooling"
                    f"{_ON_PIXELS}",
                    call.layer,
                )

    def _cut_windows(self, receptive_field: float) -> None:
        """Each within those that it is computed from."""
        influence = self._influence()
        for call in self.calls:
            if not call.output.on_grid:
                continue
            deviation, step = influence[call.output], self.step(call.output)
            before = [self._windows[value] for value in call.maps if value.on_grid]
            if call.convolutions == 2:
                wider = _input_deviation(deviation, call.layer.sigma)
                middle = self._window(receptive_field * wider, step).within(before)
                self._middles[call.output], before = middle, [middle]
            window = self._window(receptive_field * deviation, step)
            self._windows[call.output] = window.within(before)

    def _window(self, reach: float, step: float) -> Grid:
        return Grid((math.ceil(reach / step - 1e-6),) * len(self.spatial), step)

    def _format(self) -> str:
        ours = [call.layer for call in self.calls if type(call.layer) in _OURS]
        for layer in ours:
            if layer.data_format != ours[0].data_format:
                raise UnsupportedLayer("has another data format than the first", layer)
        return ours[0].data_format if ours else "channels_last"

    def _positions(self, value: Value) -> tuple[int, ...]:
        shape = list(value.tensor.shape[1:])
        del shape[self.channel_axis - 1]
        return tuple(shape)

    def _check(self, network) -> None:
        if self.density is not None and not any(c.convolutions for c in self.calls):
            raise UnsupportedLayer(f"has no Gaussian derivative layer{_ON_PIXELS}")
        if not any(call.takes_scales for call in self.calls):
            warnings.warn(
                "`ScaleChannels` changes the scale of Gaussian derivative layers, and "
                f"its network {network.name!r} has none: its output is the same "
                "at each initial scale.",
                stacklevel=3,
            )
        for call in self.calls:
            reason = self._fault(call) if call.maps else None
            if reason is not None:
                advice = "" if self.density is None else _ON_PIXELS
                raise UnsupportedLayer(reason + advice, call.layer)

    def _fault(self, call: Call) -> str | None:
        if self.density is None:
            derives = is_derivative_layer(call.layer)
            missing = derives and not call.takes_scales
            return "has a `call` without the argument `scales`" if missing else None
        if call.convolutions:
            return None
        if is_derivative_layer(call.layer):
            return "is of a subclass: what it does on a grid is not known"
        maps = [*call.maps, call.output] if call.output.is_map else call.maps
        if len(set(map(self._positions, maps))) > 1:
            return "changes the size of its maps"
        on_pixels = all(value.on_pixels for value in call.maps)
        if on_pixels and not self._is_pointwise(call):
            return "combines several pixels before the first `GaussDerConv`"
        return None

    def _may_see_more(self, call: Call) -> bool:
        """Whether an output does not change where its map is larger than the image."""
        gives_map = call.maps and call.output.is_map
        return not gives_map or bool(call.convolutions) or self._is_pointwise(call)

    def _is_pointwise(self, call: Call) -> bool:
        how = call.args, self.rank, self.channel_axis
        return acts_at_each_position(call.layer, *how)

    def _smallest_scales(self, searched: set[Value]) -> dict[Value, float]:
        """The smallest σ from each map on; half of it where peaks are looked for."""
        scales = dict.fromkeys([self.source, *(c.output for c in self.calls)], math.inf)
        for call in reversed(self.calls):
            limit = scales[call.output]
            if call.convolutions:
                limit = min(limit, call.layer.sigma)
            for value in call.maps:
                scales[value] = min(scales[value], limit)
        for call in self.calls:
            if call.convolutions:
                scales[call.output] = min(call.layer.sigma, scales[call.output])
                if call.output in searched:
                    scales[call.output] /= 2
            elif call.output.on_grid:
                inputs = (value for value in call.maps if value.on_grid)
                scales[call.output] = max(scales[value] for value in inputs)
        return scales

    def _influence(self) -> dict[Value, float]:
        """Standard deviation of each map's influence on the scores."""
        influence = dict.fromkeys([self.source, *(c.output for c in self.calls)], 0.0)
        for call in reversed(self.calls):
            needed = influence[call.output]
            for _ in range(call.convolutions):
                needed = _input_deviation(needed, call.layer.sigma)
            is_known = call.convolutions or call.selects
            if call.maps and not is_known and not self._is_pointwise(call):
                needed = _input_deviation(needed, self.step(call.maps[0]))
            for value in call.maps:
                influence[value] = max(influence[value], needed)
        return influence


def _input_deviation(deviation: float, sigma: float) -> float:
    """Standard deviation of the influence at the input of a layer of scale σ."""
    # A derivative reaches farther than its Gaussian: the last layer counts twice.
    return math.hypot(deviation, sigma if deviation else math.sqrt(2) * sigma)
