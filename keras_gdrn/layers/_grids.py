"""Values on the grids of several scales, and matrices along their axes."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_gdrn.layers._tiles import Tiles, tiled


@dataclasses.dataclass(frozen=True)
class Grid:
    """Values at the points of a grid: `(*sizes, everything else)`, however folded.

    Several terms may be stacked: `(terms, *sizes, everything else)`.
    """

    values: Any
    sizes: tuple

    def along(self, axis: int, matrix) -> "Grid":
        """The matrix times each line along the axis."""
        if tiles := tiled([matrix]):
            return self._by_tiles(axis, tiles, self._lines(axis))
        matrix = self._tensor(matrix)
        return self._resized(axis, matrix, ops.matmul(matrix, self._lines(axis)))

    def stacked_along(self, axis: int, matrices: list) -> "Grid":
        """Each of the matrices times each line along the axis, stacked."""
        if len(matrices) > 1 and (tiles := tiled(matrices)):
            return self._by_tiles(axis, tiles, self._lines(axis))
        several = self._tensor(_one_factor(matrices, axis, ahead=True))
        values = ops.matmul(several, self._lines(axis))
        return self._resized(axis, matrices[0], values)

    def summed_along(self, axis: int, matrices: list) -> "Grid":
        """Of stacked terms: the sum of each matrix times the lines of its term."""
        if tiles := tiled(matrices):
            lines = self._lines(axis, len(matrices))
            if axis == 0 and len(matrices) > 1:
                lines = ops.reshape(lines, (len(matrices), self.sizes[0], -1))
            return self._by_tiles(axis, tiles, lines, summed=True)
        several = self._tensor(_one_factor(matrices, axis, ahead=False))
        values = ops.matmul(several, self._lines(axis, len(matrices)))
        values = ops.sum(values, axis=0) if axis else values
        return self._resized(axis, matrices[0], values)

    def rows(self, channels: int):
        return ops.reshape(self.values, (-1, channels))

    def stacked_rows(self, terms: int, channels: int):
        return ops.reshape(self.values, (terms, -1, channels))

    def positions_first(self):
        return ops.reshape(self.values, (math.prod(self.sizes), -1))

    def _lines(self, axis: int, terms: int = 1):
        """Folded into `(terms, in front, size, behind)`; a single term has no axis.

        Nothing is in front of the first axis: terms are then a part of that axis.
        """
        *front, size = self.sizes[: axis + 1]
        if not front:
            return ops.reshape(self.values, (terms * size, -1))
        shape = (math.prod(front), size, -1)
        return ops.reshape(self.values, shape if terms == 1 else (terms, *shape))

    def _by_tiles(self, axis: int, tiles: Tiles, lines, summed=False) -> "Grid":
        values = tiles.product(lines, self.values.dtype, int(axis > 0), summed)
        sizes = (*self.sizes[:axis], tiles.outputs, *self.sizes[axis + 1 :])
        return Grid(values, sizes)

    def _tensor(self, matrix):
        return ops.convert_to_tensor(matrix, self.values.dtype)

    def _resized(self, axis: int, matrix, values) -> "Grid":
        size = length(matrix, 0)
        return Grid(values, (*self.sizes[:axis], size, *self.sizes[axis + 1 :]))


def _one_factor(matrices: list, axis: int, ahead: bool):
    """The matrices as one factor of stacked terms.

    Along the first axis they are one matrix, put one below another if terms come out,
    side by side if terms go in; along the others, a matrix for each term.
    """
    numpy = np if isinstance(matrices[0], np.ndarray) else ops
    if axis == 0:
        return numpy.concatenate(matrices, axis=0 if ahead else 1)
    return numpy.expand_dims(numpy.stack(matrices), 1)


def stacked(terms: list[Grid]) -> Grid:
    """Several values on one grid."""
    return Grid(ops.stack([term.values for term in terms]), terms[0].sizes)


def on_grids(x, sizes: Sequence[tuple]) -> list[Grid]:
    """The part of each scale, positions first, on a grid of these sizes."""
    parts = split(x, [math.prod(of_scale) for of_scale in sizes])
    return [Grid(part, of_scale) for part, of_scale in zip(parts, sizes, strict=True)]


def split(x, positions: Sequence) -> list:
    """The positions of each scale, as `(positions, everything else)`."""
    x = ops.reshape(x, (sum(positions), -1))
    if len(positions) == 1:
        return [x]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # Keras finds the sizes from ends again, by ten operations, and wants numbers.
        return tf.split(x, positions)
    return ops.split(x, list(itertools.accumulate(positions))[:-1])


def joined(parts: list, axis: int = 0):
    return ops.concatenate(parts, axis) if len(parts) > 1 else parts[0]


def length(matrix, axis: int):
    """Static where it is known: asking the graph costs an operation."""
    static = matrix.shape[axis]
    return ops.shape(matrix)[axis] if static is None else static
