"""The calls that a network consists of, found by following it with shapes alone."""

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

    def acts_at_each_position(self, rank: int, channel_axis: int) -> bool:
        """Whether it does the same at every position, without looking at any other."""
        return acts_at_each_position(self.layer, self.args, rank, channel_axis)


def calls_of(network, source: Value) -> tuple[list[Call], Value]:
    """The calls of a network in their order, and what it gives.

    Args:
        network: Layer or model; what Keras' own models consist of is followed.
        source: Its input.

    Raises:
        UnsupportedLayer: If a model has several outputs.
    """
    calls: list[Call] = []

    def follow(layer, *args, **kwargs) -> Value:
        mode = kwargs.get("training")
        if _is_plain(layer, "sequential"):
            (value,) = args
            for inner in layer.layers:
                value = follow(inner, value, **in_mode(inner, mode))
            return value
        if _is_plain(layer, "functional"):

            def applied(inner):
                def call(*args, **kwargs):
                    return follow(inner, *args, **kwargs | in_mode(inner, mode))

                return call

            inputs = keras.tree.flatten(args)
            outputs = layer._run_through_graph(inputs, operation_fn=applied)
            return _only(keras.tree.flatten(outputs), layer)
        if _has_derivatives_inside(layer):
            inputs, outputs = _symbolic(layer, args)

            def applied_inside(inner):
                return lambda *args, **kwargs: follow(inner, *args, **kwargs)

            graph = keras.Function(inputs, outputs)
            outputs = graph._run_through_graph(args, operation_fn=applied_inside)
            return _only(keras.tree.flatten(outputs), layer)
        calls.append(Call(layer, args, kwargs, _given(layer, args, kwargs)))
        return calls[-1].output

    return calls, follow(network, source)


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


def _symbolic(layer, args: tuple) -> tuple[list, Any]:
    """What a layer of one's own computes, from what its `call` does with symbols."""
    try:
        inputs = [keras.KerasTensor(x.tensor.shape, x.tensor.dtype) for x in args]
        return inputs, layer.call(*inputs)
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
