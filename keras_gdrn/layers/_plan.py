"""Chooses the grid on which each map of a network is evaluated.

A scale channel is the network on a grid whose step is its initial scale: by scale
covariance `Γ_{σ_0}(f)(x) = Γ_1(f(σ_0 ·))(x / σ_0)`. So all lengths here are in units of
the initial scale, and a plan is the same for all scale channels.

The step of a map is the smallest scale of the layers around it, over the density. If
the network ends in central selection, a map is a window around the center. Its width
follows from the influence of its positions on the scores (the effective receptive
field), which is a Gaussian to first order. The variance is the sum of the squared
scales of the layers that follow; the last layer counts twice.
"""

import math
from typing import Any

import keras

from keras_gdrn.layers._calls import Call, UnsupportedLayer, Value, maps_before_pooling
from keras_gdrn.layers._grid import Grid, covering
from keras_gdrn.layers._network import ON_PIXELS, Network

Group = tuple[float, ...]  # initial scales


class Plan:
    """The grids of the maps of a network.

    Its arguments are those of `ScaleChannels`. Raises `UnsupportedLayer`.
    """

    def __init__(
        self,
        network: Network,
        scales: Group,
        density: float,
        receptive_field: float | None,
    ):
        self.network, self.calls = network, network.calls
        self.scales, self.density = scales, density
        before_pooling = maps_before_pooling(self.calls)
        self._sigma = self._smallest_scales(before_pooling)
        whole_maps = before_pooling or network.result.is_map
        windows = None if whole_maps else receptive_field
        self.uses_windows = windows is not None
        # Equal windows are one batch; whole maps differ in size.
        self.groups = [scales] if self.uses_windows else [(s,) for s in scales]
        self._windows: dict[Value, Grid] = {}
        self._middles: dict[Value, Grid] = {}  # between the convolutions of blocks
        if windows is not None:
            self._set_windows(windows)
        self._check_layers()

    def step(self, value: Value) -> float:
        """Between the points of a map, in units of the initial scale."""
        return self._sigma[value] / self.density

    def grids(self, value: Value, spatial) -> list[Grid]:
        """Grids of a map, one for each group of scale channels; none of the pixels.

        Where maps are no windows, they depend on the sizes of the images.
        """
        if value.on_pixels:
            return []
        if self.uses_windows:
            return [self._windows[value]]
        return [covering(spatial, sigma0, self.step(value)) for sigma0 in self.scales]

    def middles(self, call: Call, targets: list[Grid]) -> list[Grid]:
        """Grids of the map between the two convolutions of a residual block."""
        return [self._middles[call.output]] if self.uses_windows else targets

    def _check_layers(self) -> None:
        """Refuses a layer that does not give on a grid what the network expects."""
        spatial = self.network.positions(self.network.source)
        others = filter(self.network.looks_around, self.calls)
        for call in others if None not in spatial else []:
            value = call.output if call.output.is_map else call.maps[0]
            for grid in self.grids(value, spatial):
                self._check_on(grid, call)

    def _check_on(self, grid: Grid, call: Call) -> None:
        def tensor(leaf) -> Any:
            if isinstance(leaf, keras.Variable):
                return keras.KerasTensor(leaf.shape, leaf.dtype)
            if not isinstance(leaf, Value) or not leaf.is_map:
                return getattr(leaf, "tensor", leaf)
            shape, axis = [None, *grid.sizes], self.network.channel_axis
            shape.insert(axis, leaf.tensor.shape[axis])
            return keras.KerasTensor(shape, leaf.tensor.dtype)

        args, kwargs = keras.tree.map_structure(tensor, (call.args, call.kwargs))
        expected = tensor(call.output).shape
        try:  # by its call, even if the layer tells its output's shape otherwise
            output = keras.Operation.compute_output_spec(call.layer, *args, **kwargs)
            found = output.shape
        except Exception:
            found = "an error"
        if found != expected:
            raise UnsupportedLayer(
                f"gives {found} instead of {expected} on a grid of {grid.sizes} "
                f"points: use `SpatialSelection` first{ON_PIXELS}",
                call.layer,
            )

    def _set_windows(self, receptive_field: float) -> None:
        """Sets the window of each map, within those of the maps it is computed from."""
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
        return Grid((math.ceil(reach / step - 1e-6),) * (self.network.rank - 2), step)

    def _smallest_scales(self, before_pooling: set[Value]) -> dict[Value, float]:
        """The smallest σ from each map on; half of it before a pooling."""
        sigmas = dict.fromkeys(self.network.values, math.inf)
        for call in reversed(self.calls):
            limit = sigmas[call.output]
            if call.convolutions:
                limit = min(limit, call.layer.sigma)
            for value in call.maps:
                sigmas[value] = min(sigmas[value], limit)
        for call in self.calls:
            if call.convolutions:
                sigmas[call.output] = min(call.layer.sigma, sigmas[call.output])
                if call.output in before_pooling:
                    sigmas[call.output] /= 2
            elif call.output.on_grid:
                inputs = (value for value in call.maps if value.on_grid)
                sigmas[call.output] = max(sigmas[value] for value in inputs)
        return sigmas

    def _influence(self) -> dict[Value, float]:
        """Standard deviation of each map's influence on the scores."""
        influence = dict.fromkeys(self.network.values, 0.0)
        for call in reversed(self.calls):
            needed = influence[call.output]
            for _ in range(call.convolutions):
                needed = _input_deviation(needed, call.layer.sigma)
            if self.network.looks_around(call):
                needed = _input_deviation(needed, self.step(call.maps[0]))
            for value in call.maps:
                influence[value] = max(influence[value], needed)
        return influence


def _input_deviation(deviation: float, sigma: float) -> float:
    """Standard deviation of the influence at the input of a layer of scale σ."""
    # A derivative reaches farther than its Gaussian: the last layer counts twice.
    return math.hypot(deviation, sigma if deviation else math.sqrt(2) * sigma)
