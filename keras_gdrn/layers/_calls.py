"""The calls that a network consists of, found by following it with shapes alone."""

import dataclasses
import functools
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
    """One call of a layer or operation.

    Attributes:
        mode: Whether it is trained, where a layer of one's own says so.
    """

    layer: Any
    args: tuple
    kwargs: dict
    output: Value
    mode: bool | None = None

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

    def in_mode(self, training: bool | None) -> bool | None:
        return training if self.mode is None else self.mode

    def acts_at_each_position(self, rank: int, channel_axis: int) -> bool:
        """Whether it does the same at every position, without looking at any other."""
        return acts_at_each_position(self.layer, self.args, rank, channel_axis)


def calls_of(network, source: Value) -> tuple[list[Call], Value]:
    """The calls of a network in their order, and what it gives.

    Args:
        network: Layer or model. What Keras' own models consist of is followed, and so
            are layers that apply Gaussian derivative layers.
        source: Its input.

    Raises:
        UnsupportedLayer: If a layer has several outputs, or cannot be followed.
    """
    calls: list[Call] = []
    return calls, _followed(calls, network, (source,), {})


def _followed(calls: list, layer, args: tuple, kwargs: dict, own=False) -> Value:
    """What a layer gives; its calls are appended.

    Args:
        own: Whether it is called by a layer of one's own, whose word on the mode of
            training stands. Keras' models replace it by that in which they are called.
    """
    mode = kwargs.get("training")

    def applied(inner, own=own):
        def call(*args, **kwargs):
            said = {key: x for key, x in kwargs.items() if x is not None or not own}
            of_call = in_mode(inner, mode)
            kwargs = of_call | said if own else said | of_call
            return _followed(calls, inner, args, kwargs, own)

        return call

    if _is_plain(layer, "sequential"):
        (value,) = args
        for inner in layer.layers:
            value = applied(inner)(value)
        return value
    if _is_plain(layer, "functional"):
        inputs = keras.tree.flatten(args)
        outputs = layer._run_through_graph(inputs, operation_fn=applied)
        return _only(keras.tree.flatten(outputs), layer)
    if _has_derivatives_inside(layer):
        of_own = functools.partial(applied, own=True)
        outputs = _graph_of(layer, args)._run_through_graph(args, operation_fn=of_own)
        return _only(keras.tree.flatten(outputs), layer)
    output = _given(layer, args, kwargs)
    calls.append(Call(layer, args, kwargs, output, mode if own else None))
    return output


def _only(values: list, layer) -> Any:
    if len(values) != 1:
        raise UnsupportedLayer(f"its layer {layer.name!r} has {len(values)} outputs")
    return values[0]


def is_of_derivatives(layer) -> bool:
    """Whether it is a Gaussian derivative layer, or of a class derived from one."""
    return isinstance(layer, tuple(_CONVOLUTIONS))


def _has_derivatives_inside(layer) -> bool:
    """Whether a layer of another kind applies Gaussian derivative layers."""
    if not isinstance(layer, keras.layers.Layer) or is_of_derivatives(layer):
        return False
    return any(map(is_of_derivatives, layer._flatten_layers()))


def _graph_of(layer, args: tuple):
    """What a layer of one's own computes, from what its `call` does with symbols."""
    try:
        inputs = [keras.KerasTensor(x.tensor.shape, x.tensor.dtype) for x in args]
        return keras.Function(inputs, layer.call(*inputs))
    except Exception as error:
        raise UnsupportedLayer(
            f"its layer {layer.name!r} of type {type(layer).__name__} applies Gaussian "
            f"derivative layers and cannot be followed ({error})"
        ) from error


def _given(layer, args: tuple, kwargs: dict) -> Value:
    """What a layer gives, found from shapes alone."""

    def tensor(leaf):
        return leaf.tensor if isinstance(leaf, Value) else leaf

    given = keras.tree.map_structure(tensor, (args, kwargs))
    output = layer.compute_output_spec(*given[0], **given[1])
    output = _only(keras.tree.flatten(output), layer)
    inputs = [leaf for leaf in keras.tree.flatten((args, kwargs)) if _is_map(leaf)]
    rank = inputs[0].tensor.ndim if inputs else 0
    is_map = bool(inputs) and len(output.shape) == rank
    on_pixels = is_map and all(value.on_pixels for value in inputs)
    ours = type(layer) in _CONVOLUTIONS
    return Value(output, is_map, on_pixels and not ours)


def _is_map(leaf) -> bool:
    return isinstance(leaf, Value) and leaf.is_map


def in_mode(layer, training: bool | None) -> dict:
    """What tells the layer whether it is trained, beyond what it would inherit."""
    takes = "training" in inspect.signature(layer.call).parameters
    return {"training": training} if takes and training is not None else {}


def _is_plain(layer, kind: str) -> bool:
    """Whether it is a model of Keras' own kind, also of a class derived from it."""
    return type(layer).call.__module__ == f"keras.src.models.{kind}"
