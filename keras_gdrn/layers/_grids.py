"""Values on the grids of several scales, and matrices along their axes."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import scipy.sparse
from keras import ops

from keras_gdrn.layers._tiles import by_tiles, summed_by_tiles


@dataclasses.dataclass(frozen=True)
class Grid:
    """Values at the points of a grid: `(*sizes, everything else)`, however folded.

    Several terms may be stacked, `(terms, *sizes, everything else)`.

    Attributes:
        channels: The last of everything else, as far as it is needed.
    """

    values: Any
    sizes: tuple
    channels: int = 1

    def along(self, axis: int, matrix) -> "Grid":
        """The matrix times each line along the axis."""
        if scipy.sparse.issparse(matrix):
            values = by_tiles(self._with_axis(axis), [matrix])
        else:
            values = ops.matmul(self._tensor(matrix), self._lines(axis))
        return self._resized(axis, matrix, values)

    def stacked_along(self, axis: int, matrices: list) -> "Grid":
        """Each of the matrices times each line along the axis, stacked."""
        if scipy.sparse.issparse(matrices[0]):
            values = by_tiles(self._with_axis(axis), matrices)
        else:
            several = _one_factor(matrices, self._is_leading(axis), ahead=True)
            values = ops.matmul(self._tensor(several), self._lines(axis))
        return self._resized(axis, matrices[0], values)

    def rows(self):
        return ops.reshape(self.values, (-1, self.channels))

    def stacked_rows(self, terms: int):
        return ops.reshape(self.values, (terms, -1, self.channels))

    def positions_first(self):
        return ops.reshape(self.values, (math.prod(self.sizes), -1))

    def _is_leading(self, axis: int) -> bool:
        """Whether no more than one position is in front of the axis.

        With one, TensorFlow 2.21 would write beyond the end of a product of stacked
        matrices, on processors with AVX-512.
        """
        front = math.prod(self.sizes[:axis])
        return isinstance(front, int) and front == 1

    def _lines(self, axis: int, terms: int = 1):
        """Folded into `(terms, in front, size, behind)`; a single term has no axis.

        Terms are a part of a leading axis.
        """
        front, size = math.prod(self.sizes[:axis]), self.sizes[axis]
        if self._is_leading(axis):
            return ops.reshape(self.values, (terms * size, -1))
        known = self.values.shape
        if len(known) == 3 and terms == 1 and tuple(known[:2]) == (front, size):
            return self.values  # as the last product along this axis has left them
        shape = (front, size, -1)
        return ops.reshape(self.values, shape if terms == 1 else (terms, *shape))

    def _with_axis(self, axis: int):
        """`(in front, size, behind, everything else)`."""
        front, behind = self.sizes[:axis], self.sizes[axis + 1 :]
        lines = (math.prod(front), self.sizes[axis], math.prod(behind), -1)
        return ops.reshape(self.values, lines)

    def _tensor(self, matrix):
        return ops.convert_to_tensor(matrix, self.values.dtype)

    def _resized(self, axis: int, matrix, values) -> "Grid":
        size = length(matrix, 0)
        sizes = (*self.sizes[:axis], size, *self.sizes[axis + 1 :])
        return Grid(values, sizes, self.channels)


def _one_factor(matrices: list, leading: bool, ahead: bool):
    """The matrices as one factor of stacked terms.

    Along a leading axis they are one matrix, put one below another if terms come out,
    side by side if terms go in; along the others, a matrix for each term.
    """
    numpy = np if isinstance(matrices[0], np.ndarray) else ops
    if leading:
        return numpy.concatenate(matrices, axis=0 if ahead else 1)
    return numpy.expand_dims(numpy.stack(matrices), 1)


def summed_along(axis: int, matrices: list, terms: list[Grid]) -> Grid:
    """The sum of each matrix times the lines of its term along the axis."""
    if scipy.sparse.issparse(matrices[0]):
        values = summed_by_tiles([term._with_axis(axis) for term in terms], matrices)
        return terms[0]._resized(axis, matrices[0], values)
    values = ops.stack([term.values for term in terms])
    stack = dataclasses.replace(terms[0], values=values)
    leading = stack._is_leading(axis)
    several = stack._tensor(_one_factor(matrices, leading, ahead=False))
    values = ops.matmul(several, stack._lines(axis, len(matrices)))
    values = values if leading else ops.sum(values, axis=0)
    return stack._resized(axis, matrices[0], values)


def on_grids(x, sizes: Sequence[tuple]) -> list[Grid]:
    """The part of each scale, positions first, on a grid of these sizes."""
    parts = split(x, [math.prod(of_scale) for of_scale in sizes])
    pairs = zip(parts, sizes, strict=True)
    return [Grid(part, of_scale, x.shape[-1]) for part, of_scale in pairs]


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


def unfolded(x, scales: int):
    """`(positions, batch, channels)` from whole maps, scales folded into the batch."""
    folded, *spatial, channels = ops.shape(x)
    batch = folded // scales
    x = ops.reshape(x, (scales, batch, *spatial, channels))
    positions = scales * math.prod(spatial)
    return ops.reshape(ops.moveaxis(x, 1, -2), (positions, batch, channels))


def folded(x, scales: int, spatial: tuple):
    """The inverse of `unfolded`."""
    # Not -1: of that, behind a product, LiteRT's converter makes a size.
    _, batch, channels = ops.shape(x)
    x = ops.reshape(x, (scales, *spatial, batch, channels))
    return ops.reshape(ops.moveaxis(x, -2, 1), (-1, *spatial, channels))


def length(matrix, axis: int):
    """Static where it is known: asking the graph costs an operation."""
    static = matrix.shape[axis]
    return ops.shape(matrix)[axis] if static is None else static


def later(x, done):
    """`x`, but not before `done`.

    Otherwise TensorFlow finds that it has computed the same before, and keeps it.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    import tensorflow as tf

    with tf.control_dependencies([done]):
        return tf.identity(x)
