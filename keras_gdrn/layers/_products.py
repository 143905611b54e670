"""Products with matrices along the spatial axes of maps."""

import math
from typing import Any

import keras
import numpy as np
import scipy.sparse
from keras import ops

from keras_gdrn.layers._backends import single_or_double


def matmul_along_axes(x, matrices: list) -> Any:
    """Matrices `(outputs, inputs)` times the lines of `(batch, *spatial, channels)`.

    They are constants, of NumPy or SciPy, or tensors.
    """
    # The axis that shrinks most comes first, so that the other products are smaller.
    shapes = [matrix.shape for matrix in matrices]
    shrinking = [1 if None in shape else shape[0] / shape[1] for shape in shapes]
    for axis in sorted(range(len(matrices)), key=shrinking.__getitem__):
        x = matmul_along_axis(x, axis + 1, matrices[axis])
    return x


def matmul_along_axis(x, axis: int, matrix) -> Any:
    """A matrix times the lines along one axis; axis 0 is the batch."""
    *front, size = ops.shape(x)[1 : axis + 1]
    behind = ops.shape(x)[axis + 1 :]
    lines = ops.reshape(x, (-1, size, math.prod(behind)))
    y = (_by_tiles if scipy.sparse.issparse(matrix) else _dense)(lines, matrix)
    return ops.reshape(y, (-1, *front, ops.shape(y)[1], *behind))


def _dense(lines, matrix):
    matrix = ops.convert_to_tensor(matrix, single_or_double(lines.dtype))
    matrix = ops.cast(matrix, lines.dtype)
    if keras.backend.backend() == "jax":
        # Otherwise XLA puts the batch second, and copies the map to bring it back.
        matrix = ops.broadcast_to(matrix, (ops.shape(lines)[0], *ops.shape(matrix)))
    return ops.matmul(matrix, lines)


def _by_tiles(lines, matrix):
    """The product with a matrix of few entries in each row, near the diagonal.

    A tile of rows reads a fixed number of inputs, so that the cost of an output does
    not grow with the length of the axis.
    """
    blocks, step, before = _tiles(matrix)
    tiles, rows, width = blocks.shape
    copies, size = width // step, lines.shape[1]
    after = step * (tiles + copies - 1) - before - size
    lines = ops.pad(lines, [[0, 0], [before, max(after, 0)], [0, 0]])
    parts = [
        ops.reshape(
            lines[:, step * k : step * (k + tiles)], (-1, tiles, step, lines.shape[2])
        )
        for k in range(copies)
    ]
    blocks = ops.convert_to_tensor(blocks, lines.dtype)
    y = ops.matmul(blocks, ops.concatenate(parts, axis=2))
    return ops.reshape(y, (-1, tiles * rows, lines.shape[2]))[:, : matrix.shape[0]]


def _tiles(matrix) -> tuple[np.ndarray, int, int]:
    """The matrix in tiles of its rows, `(tiles, rows, width)`.

    Also the step from one tile's inputs to the next, and the padding before the first.
    """
    outputs, inputs = matrix.shape
    # A tile is as wide as a kernel.
    tiles = math.ceil(outputs * inputs / matrix.nnz)
    rows, step = math.ceil(outputs / tiles), math.ceil(inputs / tiles)
    entries = matrix.tocoo()
    tile, row = np.divmod(entries.row, rows)
    column = entries.col - step * tile
    before = max(0, -column.min())
    width = step * math.ceil((column.max() + before + 1) / step)
    blocks = np.zeros((tiles, rows, width))
    blocks[tile, row, column + before] = entries.data
    return blocks, step, before
