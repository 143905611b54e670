"""Evaluates a network at several initial scales: on grids, or on the pixels."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_gdrn.layers._batch_normalization import normalized_jointly, normalizes
from keras_gdrn.layers._calls import Call, Value, training_argument
from keras_gdrn.layers._convolution import (
    convolved_images,
    convolved_on_grid,
    with_activity_loss,
)
from keras_gdrn.layers._grid import Grid, at_points, interpolated, sampled
from keras_gdrn.layers._network import Network
from keras_gdrn.layers._plan import Group, Plan
from keras_gdrn.layers.gauss_der_residual_block import residual


def evaluate_on_pixels(network: Network, scales: Group, images, training: bool | None):
    """The outputs `(scale * batch, …)` of whole maps at every pixel, as in the paper.

    A layer whose `call` has an argument `sigma0` receives the initial scales; its input
    batch holds the maps of one scale after those of another.
    """
    values = {network.source: ops.concatenate([images] * len(scales))}
    for call in network.calls:
        values[call.output] = _called(call, values, training, scales)
    return values[network.result]


def _called(call: Call, inputs: dict, training: bool | None, scales: Group = ()):
    def argument(leaf):
        return inputs[leaf] if isinstance(leaf, Value) else leaf

    args, kwargs = keras.tree.map_structure(argument, (call.args, call.kwargs))
    training = call.training_mode(training)
    if _normalizes_a_map(call):
        (output,) = normalized_jointly(call.layer, [inputs[call.maps[0]]], training)
        return output
    kwargs |= training_argument(call.layer, training)
    if scales and call.takes_sigma0:
        kwargs["sigma0"] = scales
    return call.layer(*args, **kwargs)


def _normalizes_a_map(call: Call) -> bool:
    return len(call.inputs) == 1 and call.output.is_map and normalizes(call.layer)


def evaluate_on_grids(plan: Plan, images, training: bool | None):
    """The outputs `(scale * batch, …)`, with maps interpolated at the pixels."""
    return _GridEvaluation(plan, images, training).outputs()


class _GridEvaluation:
    """One evaluation of a network on a batch of images, by its plan.

    A map is a list of tensors `(scale * batch, *points, channels)`, one for each group
    of scale channels that have the same grids. The groups share their matrices.
    """

    def __init__(self, plan: Plan, images, training: bool | None):
        self.plan, self.training = plan, training
        images = self._to_channels_last(images)
        self.spatial = ops.shape(images)[1:-1]
        self.values: dict[Value, Any] = {plan.network.source: images}

    def outputs(self):
        for call in self.plan.calls:
            self.values[call.output] = self._applied(call)
        result = self.plan.network.result
        return self._at_pixels(result) if result.is_map else self.values[result]

    def _applied(self, call: Call):
        if not call.maps or call.output.on_pixels:
            return self._call_channels_last(call, self.values)
        by_convolutions = self._any_layer, self._convolution, self._block
        return by_convolutions[call.convolutions](call)

    def _convolution(self, call: Call):
        (value,) = call.inputs
        grids = self._grids(value), self._grids(call.output)
        maps = self._convolved(call.layer, *grids, self.values[value])
        return with_activity_loss(call.layer, [call.layer.activation(x) for x in maps])

    def _convolved(self, layer, grids: list[Grid], targets: list[Grid], maps) -> list:
        """The convolution, with its bias, at the points of the target grids."""
        if not grids:
            convolve = partial(convolved_images, layer, maps)
            return list(map(convolve, targets, self.plan.groups))
        # Beyond a window there is more image; its mirror image is the best guess.
        boundary = "symmetric" if self.plan.uses_windows else layer.boundary
        convolve = partial(convolved_on_grid, layer, boundary=boundary)
        return list(map(convolve, maps, grids, targets))

    def _block(self, call: Call):
        block, (value,) = call.layer, call.inputs
        grids, targets = self._grids(value), self._grids(call.output)
        middle = self.plan.middles(call, targets)
        first = partial(self._convolved, block.conv1, grids, middle)
        second = partial(self._convolved, block.conv2, middle, targets)
        skip = self._at_points(value, targets)
        training = call.training_mode(self.training)
        return residual(block, self.values[value], skip, first, second, training)

    def _any_layer(self, call: Call):
        gives_map = call.output.is_map
        first = next(value for value in call.maps if not value.on_pixels)
        targets = self._grids(call.output if gives_map else first)
        inputs = {value: self._at_points(value, targets) for value in call.maps}
        if _normalizes_a_map(call):
            maps = [self._to_data_format(x) for x in inputs[call.maps[0]]]
            training = call.training_mode(self.training)
            maps = normalized_jointly(call.layer, maps, training)
            return [self._to_channels_last(x) for x in maps]
        inputs |= {v: self._parts(v) for v in call.inputs if not v.is_map}
        outputs = [
            self._call_channels_last(call, {v: parts[k] for v, parts in inputs.items()})
            for k in range(len(targets))
        ]
        return outputs if gives_map else ops.concatenate(outputs)

    def _call_channels_last(self, call: Call, inputs: dict):
        inputs = {value: inputs[value] for value in call.inputs}
        inputs |= {value: self._to_data_format(inputs[value]) for value in call.maps}
        output = _called(call, inputs, self.training)
        return self._to_channels_last(output) if call.output.is_map else output

    def _grids(self, value: Value) -> list[Grid]:
        return self.plan.grids(value, self.spatial)

    def _parts(self, value: Value) -> list:
        """A vector, such as scores, split by group of scale channels."""
        return ops.split(self.values[value], len(self.plan.groups))

    def _at_points(self, value: Value, targets: list[Grid]) -> list:
        x = self.values[value]
        if value.on_pixels:
            network = self.plan.network
            x = ops.cast(x, network.source.tensor.dtype)
            sample = partial(sampled, x, boundary=network.boundary)
            return list(map(sample, targets, self.plan.groups))
        return list(map(at_points, x, self._grids(value), targets))

    def _at_pixels(self, value: Value):
        step, maps = self.plan.step(value), self.values[value]
        maps = [
            interpolated(x, self.spatial, 1 / (step * sigma0))
            for x, sigma0 in zip(maps, self.plan.scales, strict=True)
        ]
        return self._to_data_format(ops.concatenate(maps))

    def _to_data_format(self, x):
        return ops.moveaxis(x, -1, 1) if self.plan.network.channels_first else x

    def _to_channels_last(self, x):
        return ops.moveaxis(x, 1, -1) if self.plan.network.channels_first else x
