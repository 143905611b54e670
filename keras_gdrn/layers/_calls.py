"""The layer calls of a network, found by tracing it with shapes alone."""

import dataclasses
import functools
import inspect
import itertools
from typing import Any

import keras
from keras import ops

from keras_gdrn.layers.gauss_der_conv import GaussDerConv
from keras_gdrn.layers.gauss_der_residual_block import GaussDerResidualBlock
from keras_gdrn.layers.spatial_selection import SpatialSelection

_CONVOLUTIONS = {GaussDerConv: 1, GaussDerResidualBlock: 2}
_CONSTANT = object()  # an argument that was computed without the inputs


class UnsupportedLayer(ValueError):
    """A layer that cannot be evaluated at several scales, and why."""

    def __init__(self, reason: str, layer=None):
        subject = "it"
        if layer is not None:
            subject = f"its layer {layer.name!r} of type {type(layer).__name__}"
        super().__init__(f"{subject} {reason}")


@dataclasses.dataclass(eq=False, frozen=True)
class Value:
    """An input or output of a layer of the network."""

    tensor: Any  # of its shape and dtype in the network itself
    is_map: bool  # with spatial positions
    on_pixels: bool = False  # an image, before the first Gaussian derivative layer

    @property
    def on_grid(self) -> bool:
        return self.is_map and not self.on_pixels


@dataclasses.dataclass(frozen=True)
class Call:
    layer: Any  # or an operation
    args: tuple
    kwargs: dict
    output: Value
    fixed_training: bool | None = None  # where a custom layer sets `training`

    @property
    def inputs(self) -> list[Value]:
        leaves = keras.tree.flatten((self.args, self.kwargs))
        return [leaf for leaf in leaves if isinstance(leaf, Value)]

    @property
    def maps(self) -> list[Value]:
        return [value for value in self.inputs if value.is_map]

    @property
    def convolutions(self) -> int:
        return _convolutions(self.layer)

    @property
    def is_spatial_selection(self) -> bool:
        return type(self.layer).call is SpatialSelection.call

    def training_mode(self, training: bool | None) -> bool | None:
        return training if self.fixed_training is None else self.fixed_training

    @property
    def takes_sigma0(self) -> bool:
        return "sigma0" in inspect.signature(self.layer.call).parameters


def calls_of(network, source: Value) -> tuple[list[Call], Value]:
    """The calls of a network in order, and its output.

    Keras' own models are traced into, and so are layers that apply Gaussian derivative
    layers.

    Raises:
        UnsupportedLayer: If a layer has several outputs, or cannot be traced.
        ValueError: If a layer was built for other inputs.
    """
    calls: list[Call] = []
    return calls, _trace(calls, network, (source,), {})


def _trace(calls: list, layer, args: tuple, kwargs: dict, inside=False) -> Value:
    """Appends the calls of a layer, which may stand inside a custom one, to `calls`."""
    mode = kwargs.get("training")

    def operation_fn(inner, inside=inside):
        def call(*args, **kwargs):
            kwargs = _with_mode(inner, kwargs, mode, inside)
            return _trace(calls, inner, args, kwargs, inside)

        return call

    if _is_plain(layer, "sequential"):
        (value,) = args
        for inner in layer.layers:
            value = operation_fn(inner)(value)
        return value
    if _is_plain(layer, "functional"):
        graph, inputs = layer, keras.tree.flatten(args)
        if len(inputs) != len(layer.inputs):
            reason = f"has {len(layer.inputs)} inputs, and receives {len(inputs)}"
            raise UnsupportedLayer(reason, layer)
    elif _contains_derivative_layers(layer):
        graph, inputs = _graph_of(layer, args, kwargs)
        operation_fn = functools.partial(operation_fn, inside=True)
    else:
        output = _output(layer, args, kwargs)
        calls.append(Call(layer, args, kwargs, output, mode if inside else None))
        return output
    outputs = graph._run_through_graph(inputs, operation_fn=operation_fn)
    return _single_output(keras.tree.flatten(outputs), layer)


def _with_mode(layer, kwargs: dict, mode: bool | None, inside: bool) -> dict:
    """The arguments of a call; a custom layer decides on the mode of its parts."""
    outer = training_argument(layer, mode)
    if inside:
        return outer | {name: x for name, x in kwargs.items() if x is not None}
    if kwargs.get("training") is False:  # Keras records a default, too: no decision
        kwargs = {name: x for name, x in kwargs.items() if name != "training"}
    return kwargs | outer


def _single_output(values: list, layer) -> Any:
    if len(values) != 1:
        advice = "concatenate them, and split what `ScaleChannels` returns"
        raise UnsupportedLayer(f"has {len(values)} outputs: {advice}", layer)
    return values[0]


def maps_before_pooling(calls: list[Call]) -> set[Value]:
    """Last maps before a pooling over all positions, such as a maximum."""
    found: set[Value] = set()
    for call in reversed(calls):
        central = call.is_spatial_selection and call.layer.mode == "center"
        pools = not (call.output.is_map or central)
        if pools or (call.output in found and not call.convolutions):
            found.update(value for value in call.maps if value.on_grid)
    return found


def is_derivative_layer(layer) -> bool:
    """Whether it is a Gaussian derivative layer, or of a subclass."""
    return isinstance(layer, tuple(_CONVOLUTIONS))


def _convolutions(layer) -> int:
    """Their number in a layer, unless a subclass has another `call`."""
    return sum(n for kind, n in _CONVOLUTIONS.items() if type(layer).call is kind.call)


def _contains_derivative_layers(layer) -> bool:
    """Whether a layer of another kind applies Gaussian derivative layers."""
    if not isinstance(layer, keras.layers.Layer) or is_derivative_layer(layer):
        return False
    return any(map(is_derivative_layer, layer._flatten_layers()))


def _graph_of(layer, args: tuple, kwargs: dict) -> tuple[keras.Function, list[Value]]:
    """What a custom layer computes, from its `call` on symbolic inputs; its inputs."""
    values = [x for x in keras.tree.flatten((args, kwargs)) if isinstance(x, Value)]

    def traced(**mode) -> keras.Function:
        symbols = {v: keras.KerasTensor(v.tensor.shape, v.tensor.dtype) for v in values}
        given, named = keras.tree.map_structure(
            lambda x: symbols[x] if isinstance(x, Value) else x, (args, kwargs)
        )
        return keras.Function([*symbols.values()], layer.call(*given, **named | mode))

    decided = "training" in kwargs or not _takes_training(layer)
    modes = [{}] if decided else [{"training": m} for m in (None, True, False)]
    try:
        graphs = [traced(**mode) for mode in modes]
    except Exception as error:
        reason = f"applies Gaussian derivative layers and cannot be traced ({error})"
        raise UnsupportedLayer(reason, layer) from error
    steps, *others = map(_steps, graphs)
    if any(other != steps for other in others):
        fault = "computes something else in training"
    elif any(_CONSTANT in arguments for _, arguments in steps):
        fault = "has an operation on weights, constants or random numbers alone"
    else:
        return graphs[0], [*dict.fromkeys(values)]
    raise UnsupportedLayer(f"{fault}: put that into a layer of its own", layer)


def _steps(graph: keras.Function) -> list[tuple]:
    """Each layer, or kind of operation, with its arguments except `training`."""
    steps = []
    for node in itertools.chain(*graph._nodes_by_depth.values()):
        operation, given = node.operation, node.arguments
        named = {k: x for k, x in given.kwargs.items() if k != "training"}
        is_layer = isinstance(operation, keras.layers.Layer)
        leaves = map(_comparable, keras.tree.flatten((given.args, named)))
        steps.append((operation if is_layer else type(operation), [*leaves]))
    return steps


def _comparable(leaf) -> Any:
    if ops.is_tensor(leaf) and not isinstance(leaf, keras.Variable):
        return _CONSTANT
    return leaf if isinstance(leaf, (int, float, str)) else None


def _output(layer, args: tuple, kwargs: dict) -> Value:
    """A layer's output, found from shapes alone."""

    def tensor(leaf):
        return leaf.tensor if isinstance(leaf, Value) else leaf

    given = keras.tree.map_structure(tensor, (args, kwargs))
    is_layer = isinstance(layer, keras.layers.Layer)
    if is_layer:
        layer._assert_input_compatibility(given[0] or next(iter(given[1].values())))
    output = layer.compute_output_spec(*given[0], **given[1])
    output = _single_output(keras.tree.flatten(output), layer)
    leaves = keras.tree.flatten((args, kwargs))
    inputs = [leaf for leaf in leaves if isinstance(leaf, Value) and leaf.is_map]
    is_map = bool(inputs) and len(output.shape) == inputs[0].tensor.ndim
    is_map &= not (is_layer and getattr(layer, "keepdims", False))  # a global pooling
    on_pixels = is_map and all(value.on_pixels for value in inputs)
    return Value(output, is_map, on_pixels and not _convolutions(layer))


def training_argument(layer, training: bool | None) -> dict:
    """The argument `training`, if it is known and the layer's `call` has one."""
    given = training is not None and _takes_training(layer)
    return {"training": training} if given else {}


def _takes_training(layer) -> bool:
    return "training" in inspect.signature(layer.call).parameters


def _is_plain(layer, kind: str) -> bool:
    """Whether it is a Keras model of this kind, or of a subclass with its `call`."""
    return type(layer).call.__module__ == f"keras.src.models.{kind}"
