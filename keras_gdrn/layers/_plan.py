"""On which grid each map of a network is evaluated.

A scale channel is the network on a grid whose step is its initial scale: by scale
covariance `Γ_{σ_0}(f)(x) = Γ_1(f(σ_0 ·))(x / σ_0)`. So all lengths here are in units of
the initial scale, and a plan is the same for all scale channels.

A network is followed call by call. Each map has the largest step, a power of two, that
the layers around it allow. Where the network ends in central selection, a map is a
window around the center: the influence that its positions have on the scores is, to
first order, a Gaussian (the effective receptive field), whose variance is the sum of
the squared scales of the layers that follow, of which the last counts twice.
"""

import dataclasses
import inspect
import math
from typing import Any

import keras

from keras_gdrn.layers._pointwise import acts_at_each_position
from keras_gdrn.layers.gauss_der_conv import GaussDerConv
from keras_gdrn.layers.gauss_der_residual_block import GaussDerResidualBlock
from keras_gdrn.layers.spatial_selection import SpatialSelection

# Convolutions that a layer consists of. Exact types: what a subclass does is not known.
_CONVOLUTIONS = {GaussDerConv: 1, GaussDerResidualBlock: 2}


class UnsupportedLayer(ValueError):
    """A layer that cannot be evaluated on a grid."""


@dataclasses.dataclass(frozen=True)
class Grid:
    """Points around the center of the image.

    Attributes:
        halves: Points on either side of the central one, along each axis.
        step: Their distance.
    """

    halves: tuple[int, ...]
    step: float

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(2 * half + 1 for half in self.halves)

    def widened(self, points: int) -> "Grid":
        return Grid(tuple(half + points for half in self.halves), self.step)

    def within(self, other: "Grid") -> "Grid":
        """As many of its points as lie within another grid."""
        limits = (math.floor(h * other.step / self.step) for h in other.halves)
        return Grid(tuple(map(min, self.halves, limits)), self.step)


@dataclasses.dataclass(eq=False)
class Value:
    """What a layer of the network takes or gives.

    Attributes:
        tensor: Its shape and dtype in the network itself.
        is_map: Whether it has positions.
        on_pixels: Whether it is an image, before the first Gaussian derivative layer.
        deviation: Standard deviation of its influence on the scores.
        sigma: Smallest scale at which the map is written or read.
    """

    tensor: Any
    is_map: bool
    on_pixels: bool = False
    deviation: float = 0.0
    sigma: float = math.inf


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of a layer or operation."""

    layer: Any
    args: tuple
    kwargs: dict
    output: Value

    @property
    def inputs(self) -> list[Value]:
        leaves = keras.tree.flatten((self.args, self.kwargs))
        return [leaf for leaf in leaves if isinstance(leaf, Value)]

    @property
    def maps(self) -> list[Value]:
        return [value for value in self.inputs if value.is_map]

    @property
    def convolutions(self) -> int:
        return _CONVOLUTIONS.get(type(self.layer), 0)

    @property
    def selects(self) -> bool:
        return type(self.layer) is SpatialSelection


class Plan:
    """The calls of a network, and the grids of its maps.

    Args:
        network: Layer or model with one input and one output.
        input_shape: Shape of the images, whose sizes are known.
        density: Samples per σ: a map of scale σ has a step of at most σ / density.
        extent: Half-width of windows in standard deviations of the influence; `None`
            for whole maps.

    Raises:
        UnsupportedLayer: If a layer cannot be evaluated on a grid.
    """

    def __init__(self, network, input_shape, density: float, extent: float | None):
        self.density, self.extent, self.rank = density, extent, len(input_shape)
        self.calls: list[Call] = []
        image = keras.KerasTensor((None, *input_shape[1:]), network.compute_dtype)
        self.source = Value(image, is_map=True, on_pixels=True)
        self.result = self._follow(network, self.source)
        self._check_formats()
        first = 2 if self.channels_first else 1
        self.spatial = tuple(input_shape[first : first + self.rank - 2])
        if not any(call.convolutions for call in self.calls):
            raise UnsupportedLayer("no layer of it is a Gaussian derivative layer")
        for call in self.calls:
            self._check(call)
        self._choose_scales()
        self._measure_influence()
        self.coarsest = max(
            (self.step(call.output) for call in self.calls if _on_grid(call.output)),
            default=1.0,
        )
        selections = [c for c in self.calls if c.maps and not c.output.is_map]
        centered = all(c.selects and c.layer.mode == "center" for c in selections)
        self.central = extent is not None and centered and not self.result.is_map

    def step(self, value: Value) -> float:
        return 2.0 ** math.floor(math.log2(value.sigma / self.density) + 1e-9)

    def grids(self, value: Value, scales: tuple[float, ...]) -> list[Grid]:
        """Of one map for all scale channels, or of one for each."""
        if self.central:
            return [self._window(value)]
        return [self._whole(self.step(value), scale) for scale in scales]

    def middle(self, call: Call, leaving: Grid) -> Grid:
        """Of the map within a residual block, between its two convolutions."""
        if not self.central:
            return leaving
        before = _before(call.output.deviation, call.layer.sigma)
        middle = Grid((self._half(before, leaving.step),) * len(leaving.halves), 1.0)
        middle = dataclasses.replace(middle, step=leaving.step)
        entering = call.inputs[0]
        return middle if entering.on_pixels else middle.within(self._window(entering))

    def _window(self, value: Value) -> Grid:
        step = self.step(value)
        window = Grid((self._half(value.deviation, step),) * (self.rank - 2), step)
        for call in self.calls:
            if call.output is value:  # what a skip connection brings is there
                for entering in call.maps:
                    if not entering.on_pixels:
                        window = window.within(self._window(entering))
        return window

    def _half(self, deviation: float, step: float) -> int:
        return math.ceil((self.extent or 0) * deviation / step - 1e-6)

    def _whole(self, step: float, scale: float) -> Grid:
        # The points of the coarsest grid are among those of the others.
        times = round(self.coarsest / step)
        halves = (
            times * math.ceil(size / (2 * scale * self.coarsest) - 1e-6)
            for size in self.spatial
        )
        return Grid(tuple(halves), step)

    def _follow(self, layer, *args, **kwargs) -> Value:
        """Keeps the calls that the layer, or each layer of the model, consists of."""
        mode = kwargs.get("training")
        if _is_plain(layer, "sequential"):
            (value,) = args
            for inner in layer.layers:
                value = self._follow(inner, value, **in_mode(inner, mode))
            return value
        if _is_plain(layer, "functional"):

            def follow(inner):
                return lambda *args, **kwargs: self._follow(
                    inner, *args, **kwargs, **in_mode(inner, mode)
                )

            outputs = keras.tree.flatten(
                layer._run_through_graph(keras.tree.flatten(args), operation_fn=follow)
            )
            if len(outputs) != 1:
                raise UnsupportedLayer(
                    f"its model {layer.name!r} has {len(outputs)} outputs"
                )
            return outputs[0]
        call = Call(layer, args, kwargs, _given(layer, args, kwargs))
        self.calls.append(call)
        return call.output

    def _check_formats(self) -> None:
        kinds = (*_CONVOLUTIONS, SpatialSelection)
        formats = {c.layer.data_format for c in self.calls if type(c.layer) in kinds}
        if len(formats) > 1:
            raise UnsupportedLayer("its layers are of several data formats")
        self.channels_first = formats == {"channels_first"}

    def _check(self, call: Call) -> None:
        if not call.maps:
            return
        conv = getattr(call.layer, "conv1", call.layer)
        if call.convolutions and conv.trainable_sigma:
            raise UnsupportedLayer(f"its layer {call.layer.name!r} learns its scale")
        name = f"its layer {call.layer.name!r} of type {type(call.layer).__name__}"
        if call.output.is_map and call.output.tensor.ndim == self.rank:
            first = 2 if self.channels_first else 1
            positions = slice(first, first + self.rank - 2)
            sizes = [v.tensor.shape[positions] for v in (*call.maps, call.output)]
            if len(set(sizes)) > 1:
                raise UnsupportedLayer(f"{name} changes the size of its maps")
        axis = 1 if self.channels_first else self.rank - 1
        on_pixels = not call.convolutions and all(v.on_pixels for v in call.maps)
        if on_pixels and not acts_at_each_position(
            call.layer, call.args, self.rank, axis
        ):
            raise UnsupportedLayer(
                f"{name} looks at several pixels before the first `GaussDerConv`"
            )

    def _choose_scales(self) -> None:
        """Steps that never shrink from layer to layer, and suit all that read them."""
        readers = dict.fromkeys(
            [self.source, *(c.output for c in self.calls)], math.inf
        )
        for call in reversed(self.calls):
            limit = readers[call.output]
            if call.convolutions:
                limit = min(limit, call.layer.sigma)
            for value in call.maps:
                readers[value] = min(readers[value], limit)
        for call in self.calls:
            if call.convolutions:
                call.output.sigma = min(call.layer.sigma, readers[call.output])
            elif _on_grid(call.output):
                call.output.sigma = max(v.sigma for v in call.maps if _on_grid(v))

    def _measure_influence(self) -> None:
        for call in reversed(self.calls):
            if not call.maps:
                continue
            needed = call.output.deviation
            for _ in range(call.convolutions):
                needed = _before(needed, call.layer.sigma)
            axis = 1 if self.channels_first else self.rank - 1
            if not (call.convolutions or call.selects) and not acts_at_each_position(
                call.layer, call.args, self.rank, axis
            ):
                needed = _before(needed, self.step(call.maps[0]))
            for value in call.maps:
                value.deviation = max(value.deviation, needed)


def _before(deviation: float, sigma: float) -> float:
    """Standard deviation of the influence, on the input of a layer of scale σ."""
    # A derivative reaches farther than its Gaussian: the last layer counts twice.
    return math.hypot(deviation, sigma if deviation else math.sqrt(2) * sigma)


def _given(layer, args: tuple, kwargs: dict) -> Value:
    """What a layer gives, found from shapes alone."""

    def tensor(leaf):
        return leaf.tensor if isinstance(leaf, Value) else leaf

    given = keras.tree.map_structure(tensor, (args, kwargs))
    output = layer.compute_output_spec(*given[0], **given[1])
    inputs = [leaf for leaf in keras.tree.flatten((args, kwargs)) if _is_map(leaf)]
    rank = inputs[0].tensor.ndim if inputs else 0
    is_map = bool(inputs) and len(output.shape) == rank
    on_pixels = is_map and all(value.on_pixels for value in inputs)
    ours = type(layer) in _CONVOLUTIONS
    return Value(output, is_map, on_pixels and not ours)


def _is_map(leaf) -> bool:
    return isinstance(leaf, Value) and leaf.is_map


def _on_grid(value: Value) -> bool:
    return value.is_map and not value.on_pixels


def in_mode(layer, training: bool | None) -> dict:
    """What tells the layer whether it is trained, beyond what it would inherit."""
    takes = "training" in inspect.signature(layer.call).parameters
    return {"training": training} if takes and training is not None else {}


def _is_plain(layer, kind: str) -> bool:
    """Whether it is a model of Keras' own kind, also of a class derived from it."""
    return type(layer).call.__module__ == f"keras.src.models.{kind}"
