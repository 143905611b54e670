"""Which part of each map the answer sees.

A network is followed call by call. Where it ends in central selection, the influence
that a position of an earlier map has on the scores is, to first order, a Gaussian (the
effective receptive field): its variance is the sum of the squared scales of the layers
that come after (see `_windows.deviation_before`).
"""

import dataclasses
import inspect
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import keras

from keras_gdrn.layers._pointwise import acts_at_each_position
from keras_gdrn.layers._scale_scope import between
from keras_gdrn.layers._windows import (
    Windows,
    cropped,
    deviation_before,
    maps_of,
    packed,
)
from keras_gdrn.layers.gauss_der_conv import GaussDerConv
from keras_gdrn.layers.gauss_der_residual_block import GaussDerResidualBlock
from keras_gdrn.layers.spatial_selection import SpatialSelection

# Exact types: what a subclass does with a map is not known.
_CONVOLUTIONS = {GaussDerConv: 1, GaussDerResidualBlock: 2}


class SeesMore(Exception):
    """A layer needs more of its input than packed maps, or windows, hold."""


@dataclasses.dataclass(eq=False)
class _Value:
    """What a layer of the network takes or gives.

    Attributes:
        is_map: Whether it has positions.
        deviation: Standard deviation of its influence on the answer, in units of the
            initial scale.
        sigma: Smallest scale at which it is written or read, in the same units; zero
            where it is needed at every pixel.
        readers: Smallest scale at which it is read.
    """

    is_map: bool
    deviation: float = 0.0
    sigma: float = 0.0
    readers: float = math.inf


@dataclasses.dataclass(frozen=True)
class _Call:
    layer: Any
    args: tuple
    kwargs: dict
    output: _Value

    @property
    def inputs(self) -> list[_Value]:
        leaves = keras.tree.flatten((self.args, self.kwargs))
        return [leaf for leaf in leaves if isinstance(leaf, _Value)]

    @property
    def merges_maps(self) -> bool:
        return self.output.is_map and len(self.inputs) > 1

    @property
    def sigmas(self) -> list[float]:
        """Scales of the convolutions that it consists of."""
        times = _CONVOLUTIONS.get(type(self.layer), 0)
        return [self.layer.sigma] * times if times else []

    @property
    def sigma(self) -> float:
        """Scale at which it reads: at every pixel if it selects, or σ may change."""
        if not self.output.is_map or self.learns_sigma:
            return 0.0
        return self.layer.sigma if self.sigmas else math.inf

    @property
    def learns_sigma(self) -> bool:
        layer = getattr(self.layer, "conv1", self.layer)
        return bool(self.sigmas) and layer.trainable_sigma

    @property
    def passes_on(self) -> bool:
        """Whether values of its inputs come out where they were."""
        return type(self.layer) is not GaussDerConv


class Course:
    """The calls of a network whose layers can work on packed maps.

    Args:
        network: Layer or model with one input and one output.
        rank: Number of axes of its maps, with those of batch and channels.

    Raises:
        SeesMore: If a layer neither is one of this package nor acts at each position.
    """

    def __init__(self, network, rank: int):
        self.calls: list[_Call] = []
        self.source = _Value(is_map=True)
        self.result = self._followed(network, self.source)
        ours = (*_CONVOLUTIONS, SpatialSelection)
        formats = {c.layer.data_format for c in self.calls if type(c.layer) in ours}
        if len(formats) > 1:
            raise SeesMore("its layers are of several data formats")
        self.channels_first = formats == {"channels_first"}
        self.channel_axis = 1 if self.channels_first else rank - 1
        for call in self.calls:
            self._check(call, rank)
        self._measure()
        self._sample()

    def check_central(self) -> None:
        """Raises `SeesMore` unless the answer is read at the center alone."""
        if self.result.is_map:
            raise SeesMore("it does not end in a `SpatialSelection`")
        for call in self.calls:
            if isinstance(call.layer, SpatialSelection) and call.layer.mode != "center":
                raise SeesMore(
                    f"its layer {call.layer.name!r} selects the spatial "
                    f"{call.layer.mode}imum"
                )
            if call.learns_sigma:
                raise SeesMore(f"its layer {call.layer.name!r} learns its scale")

    def run(self, images, answer: Windows, training: bool | None) -> Any:
        """Applies the network to packed maps.

        Args:
            images: `(batch, *spatial, channels)`.
            answer: The windows of what the answer reads.
            training: As layers take it; `None` for what the outer layer has.

        Returns:
            What the network gives, scales folded into the batch; or, if these are
            maps, `(*spatial, batch, channels)` for each scale.
        """

        def windows(value: _Value) -> Windows:
            return _windows_of(value, answer)

        def argument(leaf, call: _Call):
            if not isinstance(leaf, _Value):
                return leaf
            if call.merges_maps:
                return self._cropped(values[leaf], windows(leaf), windows(call.output))
            return values[leaf]

        values = {
            self.source: self._as_layers_take(packed(images, windows(self.source)))
        }
        for call in self.calls:
            fill = partial(argument, call=call)
            args, kwargs = keras.tree.map_structure(fill, (call.args, call.kwargs))
            kwargs |= in_mode(call.layer, training)
            ends = (call.inputs[0], call.output)
            with between(*(windows(end) if end.is_map else None for end in ends)):
                values[call.output] = call.layer(*args, **kwargs)
        result = values[self.result]
        if not self.result.is_map:
            return result
        return maps_of(self._channels_last(result), windows(self.result))

    def convolutions(self, answer: Windows) -> Iterator[tuple[Any, Windows, Windows]]:
        """Each convolution with the windows of its input and output."""
        for call in self.calls:
            layer = call.layer
            entering, leaving = (
                _windows_of(value, answer) for value in (call.inputs[0], call.output)
            )
            if type(layer) is GaussDerConv:
                yield layer, entering, leaving
            elif type(layer) is GaussDerResidualBlock:
                middle = leaving.before(layer.sigma)
                yield layer.conv1, entering, middle
                yield layer.conv2, middle, leaving

    def _followed(self, layer, *args, **kwargs) -> _Value:
        """Keeps the calls that the layer, or each layer of the model, consists of."""
        mode = kwargs.get("training")
        if _is_plain(layer, "sequential"):
            (x,) = args
            for inner in layer.layers:
                x = self._followed(inner, x, **in_mode(inner, mode))
            return x
        if _is_plain(layer, "functional"):

            def followed(inner):
                def call(*args, **kwargs):
                    kwargs |= in_mode(inner, mode)
                    return self._followed(inner, *args, **kwargs)

                return call

            outputs = layer._run_through_graph(
                keras.tree.flatten(args), operation_fn=followed
            )
            return _only(keras.tree.flatten(outputs), layer)
        inputs = keras.tree.flatten((args, kwargs))
        maps = any(isinstance(leaf, _Value) and leaf.is_map for leaf in inputs)
        selects = type(layer) is SpatialSelection
        call = _Call(layer, args, kwargs, _Value(is_map=maps and not selects))
        self.calls.append(call)
        return call.output

    def _check(self, call: _Call, rank: int) -> None:
        maps = {value.is_map for value in call.inputs}
        if maps == {False}:
            return
        of_our_own = type(call.layer) in (*_CONVOLUTIONS, SpatialSelection)
        if maps == {True} and (
            of_our_own
            or acts_at_each_position(call.layer, call.args, rank, self.channel_axis)
        ):
            return
        raise SeesMore(
            f"its layer {call.layer.name!r} of type {type(call.layer).__name__} may "
            "look at several positions of a map at once"
        )

    def _measure(self) -> None:
        for call in reversed(self.calls):
            if call.inputs[0].is_map:
                needed = call.output.deviation
                for sigma in call.sigmas:
                    needed = deviation_before(needed, sigma)
                for value in call.inputs:
                    value.deviation = max(value.deviation, needed)
        for call in self.calls:
            if call.output.is_map and not call.sigmas:
                # All positions that are there, at once.
                smallest = min(value.deviation for value in call.inputs)
                call.output.deviation = smallest

    def _sample(self) -> None:
        """How finely each map is sampled: as the layers around it need it.

        It is read at no more places than it was written at, so that what a skip
        connection brings is among its values.
        """
        self.result.readers = 0.0
        for call in reversed(self.calls):
            limit = min(call.sigma, call.output.readers if call.passes_on else math.inf)
            for value in call.inputs:
                value.readers = min(value.readers, limit)
        for call in self.calls:
            if call.sigmas:
                call.output.sigma = min(call.sigma, call.output.readers)
            elif call.output.is_map:
                call.output.sigma = max(value.sigma for value in call.inputs)

    def _cropped(self, x, windows: Windows, within: Windows):
        return self._as_layers_take(cropped(self._channels_last(x), windows, within))

    def _channels_last(self, x):
        return keras.ops.moveaxis(x, 1, -1) if self.channels_first else x

    def _as_layers_take(self, x):
        return keras.ops.moveaxis(x, -1, 1) if self.channels_first else x


def _windows_of(value: _Value, answer: Windows) -> Windows:
    return dataclasses.replace(answer, deviation=value.deviation, sigma=value.sigma)


def in_mode(layer, training: bool | None) -> dict:
    """What tells the layer whether it is trained, beyond what it would inherit."""
    takes = "training" in inspect.signature(layer.call).parameters
    return {"training": training} if takes and training is not None else {}


def _is_plain(layer, kind: str) -> bool:
    """Whether it is a model of Keras' own kind, also of a class derived from it."""
    return type(layer).call.__module__ == f"keras.src.models.{kind}"


def _only(values: list, model) -> Any:
    if len(values) != 1:
        raise SeesMore(f"its model {model.name!r} has {len(values)} outputs")
    return values[0]
