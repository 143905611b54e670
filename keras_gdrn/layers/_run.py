"""Runs a network by its plan: on grids, or on the pixels.

On grids all scale channels have equal operators. On the pixels, as in the paper, a
layer whose `call` has an argument `scales` receives the initial scales; its input batch
holds the maps of one scale after those of another.
"""

from typing import Any

import keras
from keras import ops

from keras_gdrn.layers._backends import single_or_double
from keras_gdrn.layers._batch_normalization import normalized_jointly
from keras_gdrn.layers._calls import Call, Value, training_argument
from keras_gdrn.layers._convolution import (
    BLUR,
    differences_combined,
    narrowed,
    smoothed,
    stencil_radius,
)
from keras_gdrn.layers._grid import Grid, cropped
from keras_gdrn.layers._matrices import sampling
from keras_gdrn.layers._plan import Group, Plan
from keras_gdrn.layers._products import products_along
from keras_gdrn.layers._residual import regularized, residual
from keras_gdrn.layers.gauss_der_conv import GaussDerConv
from keras_gdrn.layers.gauss_der_residual_block import GaussDerResidualBlock


class Run:
    """One evaluation of a network on a batch of images.

    On grids, a map is a list of tensors `(scale * batch, *points, channels)`, one for
    each group of scale channels that have the same grids.
    """

    def __init__(self, plan: Plan, training: bool | None):
        self.plan, self.scales, self.training = plan, plan.scales, training
        self.on_pixels = plan.density is None
        self.values: dict[Value, Any] = {}

    def __call__(self, images):
        """`(scale * batch, …)`, or a list of maps from grids, one for each scale."""
        if self.on_pixels:
            images = ops.concatenate([images] * len(self.scales))
        if self.plan.moves_channels:
            images = ops.moveaxis(images, 1, -1)
        self.values[self.plan.source] = images
        self.spatial = ops.shape(images)[1:-1]
        for call in self.plan.calls:
            self.values[call.output] = self._applied(call)
        value = self.values[self.plan.result]
        gives_maps = self.plan.result.is_map and not self.on_pixels
        return self._at_pixels(value, self.plan.result) if gives_maps else value

    def _applied(self, call: Call):
        if self.on_pixels or not call.maps or call.output.on_pixels:
            return self._called(call, self.values)
        if type(call.layer) is GaussDerConv:
            return self._convolution(call)
        if type(call.layer) is GaussDerResidualBlock:
            return self._block(call)
        return self._any_layer(call)

    def _grids(self, value: Value, groups: list[Group] | None = None) -> list[Grid]:
        """Grids of a map, none for the pixels."""
        if value.on_pixels:
            return []
        return self.plan.grids(value, self.spatial, groups or self.plan.groups)

    def _convolution(self, call: Call):
        layer, ends = call.layer, map(self._grids, (call.inputs[0], call.output))
        maps = self._convolved(layer, self.values[call.inputs[0]], *ends)
        return regularized(layer, [layer.activation(x) for x in maps])

    def _convolved(self, layer, maps, entering, leaving) -> list:
        """The convolution, with its bias, on each grid."""
        grids = [grid.widened(stencil_radius(layer)) for grid in leaving]
        if not entering:
            images = ops.cast(maps, single_or_double(layer.compute_dtype))
            scales = (narrowed(x, grids[0].step) for x in (layer.scale, layer.sigma))
            how = self.plan.groups, layer.boundary, *scales
            smooth = self._sampled(images, grids, *how)
        else:
            ends = zip(maps, entering, grids, strict=True)
            # The image goes on beyond a window, and its mirror image is closest to it.
            edge = "symmetric" if self.plan.central else layer.boundary
            smooth = [smoothed(layer, x, a, b, edge) for x, a, b in ends]
        return [
            differences_combined(layer, x, layer.scale / grid.step, BLUR)
            for x, grid in zip(smooth, grids, strict=True)
        ]

    def _block(self, call: Call):
        block, maps = call.layer, self.values[call.inputs[0]]
        entering, leaving = map(self._grids, (call.inputs[0], call.output))
        middle = self.plan.middles(call, leaving)

        def convolved(conv, maps):
            ends = (entering, middle) if conv is block.conv1 else (middle, leaving)
            return self._convolved(conv, maps, *ends)

        skip = self._at_grids(call.inputs[0], leaving, self.plan.groups)
        training = call.training_mode(self.training)
        return residual(block, maps, skip, convolved, training)

    def _any_layer(self, call: Call):
        """Applies any other layer on the grids, to one tensor after another."""
        gives_map = call.output.is_map
        first = next(value for value in call.maps if not value.on_pixels)
        # A score is of the points on the image alone.
        groups = self.plan.groups if gives_map else self.plan.apart
        target = self._grids(call.output if gives_map else first, groups)
        inputs = {value: self._at_grids(value, target, groups) for value in call.maps}
        if _normalizes(call):
            maps = [self._to_data_format(x) for x in inputs[call.maps[0]]]
            training = call.training_mode(self.training)
            maps = normalized_jointly(call.layer, maps, training)
            return [self._to_channels_last(x) for x in maps]
        inputs |= {v: self._parts(v, groups) for v in call.inputs if not v.is_map}
        outputs = [
            self._called(call, {value: parts[k] for value, parts in inputs.items()})
            for k in range(len(target))
        ]
        return outputs if gives_map else ops.concatenate(outputs)

    def _parts(self, value: Value, groups: list[Group]) -> list:
        """A value without positions, for each group of scale channels."""
        apart = iter(ops.split(self.values[value], len(self.scales)))
        return [ops.concatenate([next(apart) for _ in group]) for group in groups]

    def _called(self, call: Call, inputs: dict):
        """A layer's output, maps with the channels last."""

        def argument(leaf):
            if not isinstance(leaf, Value):
                return leaf
            return self._to_data_format(inputs[leaf]) if leaf.is_map else inputs[leaf]

        args, kwargs = keras.tree.map_structure(argument, (call.args, call.kwargs))
        training = call.training_mode(self.training)
        if _normalizes(call) and call.output.is_map:
            (output,) = normalized_jointly(call.layer, [args[0]], training)
        else:
            kwargs |= training_argument(call.layer, training)
            if self.on_pixels and call.takes_scales:
                kwargs["scales"] = self.scales
            output = call.layer(*args, **kwargs)
        return self._to_channels_last(output) if call.output.is_map else output

    def _at_grids(self, value: Value, target: list[Grid], groups: list[Group]) -> list:
        """The map at the points of smaller grids, which may be coarser."""
        if value.on_pixels:
            images = ops.cast(self.values[value], self.plan.source.tensor.dtype)
            return self._sampled(images, target, groups, self.plan.boundary)
        maps, grids = self.values[value], self._grids(value)
        if groups != self.plan.groups:
            maps, grids = self._apart(maps, grids)
        return [
            cropped(x, grid, end)
            if grid.step == end.step
            else _interpolated(x, end.sizes, end.step / grid.step)
            for x, grid, end in zip(maps, grids, target, strict=True)
        ]

    def _apart(self, maps: list, grids: list[Grid]) -> tuple[list, list[Grid]]:
        """The map and the grid of each scale channel by itself."""
        parts = [
            (part, grid)
            for x, grid, group in zip(maps, grids, self.plan.groups, strict=True)
            for part in ops.split(x, len(group))
        ]
        return [part for part, _ in parts], [grid for _, grid in parts]

    def _sampled(self, images, grids, groups, boundary, sigma=0.0, initial=0.0) -> list:
        """Images, smoothed by σ (learned, from `initial`), at the points of grids."""

        def sampled(grid: Grid, scale: float):
            how = grid.step * scale, sigma * scale, boundary, initial * scale
            matrices = [
                sampling(pixels, size, *how)
                for pixels, size in zip(self.spatial, grid.sizes, strict=True)
            ]
            return products_along(images, matrices)

        return [
            ops.concatenate([sampled(grid, scale) for scale in group])
            for grid, group in zip(grids, groups, strict=True)
        ]

    def _at_pixels(self, maps: list, value: Value) -> list:
        ends = zip(*self._apart(maps, self._grids(value)), self.scales, strict=True)
        interpolated = [
            _interpolated(x, self.spatial, 1 / (grid.step * scale))
            for x, grid, scale in ends
        ]
        return [self._to_data_format(x) for x in interpolated]

    def _to_data_format(self, x):
        """In the data format of the network's layers."""
        return ops.moveaxis(x, -1, 1) if self.plan.moves_channels else x

    def _to_channels_last(self, x):
        return ops.moveaxis(x, 1, -1) if self.plan.moves_channels else x


def _interpolated(x, sizes, step: float):
    """The cubic spline through a map at `sizes` points, `step` of its steps apart."""
    matrices = [
        sampling(size, points, step, 0.0, "symmetric")
        for size, points in zip(ops.shape(x)[1:-1], sizes, strict=True)
    ]
    return products_along(x, matrices)


def _normalizes(call: Call) -> bool:
    """Whether it is batch normalization of its first argument."""
    is_batch = isinstance(call.layer, keras.layers.BatchNormalization)
    return is_batch and len(call.args) == 1 and not call.inputs[1:]
