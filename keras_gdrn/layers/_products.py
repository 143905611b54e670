"""Products with matrices along the spatial axes of maps."""

import math
from typing import Any

import keras
import numpy as np
import scipy.sparse
from keras import ops

from keras_gdrn.layers._precision import single_or_double


def products_along(x, matrices: list) -> Any:
    """Matrices `(outputs, inputs)` times the lines of `(batch, *spatial, channels)`.

    Args:
        matrices: For each spatial axis: constants, of NumPy or SciPy, or tensors.
    """
    # First the axis that shrinks most: the other products have less to do.
    shapes = [matrix.shape for matrix in matrices]
    shrinking = [1 if None in shape else shape[0] / shape[1] for shape in shapes]
    for axis in sorted(range(len(matrices)), key=shrinking.__getitem__):
        x = product_along(x, axis + 1, matrices[axis])
    return x


def product_along(x, axis: int, matrix) -> Any:
    """A matrix times the lines along one axis, of which the first is the batch."""
    *front, size = ops.shape(x)[1 : axis + 1]
    behind = ops.shape(x)[axis + 1 :]
    lines = ops.reshape(x, (-1, size, math.prod(behind)))
    if scipy.sparse.issparse(matrix):
        y = _by_tiles(lines, matrix)
    else:
        wide = ops.convert_to_tensor(matrix, single_or_double(x.dtype))
        y = _times(ops.cast(wide, x.dtype), lines)
    return ops.reshape(y, (-1, *front, ops.shape(y)[1], *behind))


def _times(matrix, lines):
    """The product of one matrix with each of many."""
    if keras.backend.backend() == "jax":
        # Otherwise XLA puts the batch second, and brings it back by a copy of the map.
        matrix = ops.broadcast_to(matrix, (ops.shape(lines)[0], *ops.shape(matrix)))
    return ops.matmul(matrix, lines)


def products(x, axis: int, matrices) -> list:
    """Each of several matrices of one shape times the lines along an axis."""
    if any(map(scipy.sparse.issparse, matrices)):
        return [product_along(x, axis, matrix) for matrix in matrices]
    y = product_along(x, axis, np.concatenate(matrices))
    return ops.split(y, len(matrices), axis=axis)


def sum_of_products(terms: list, axis: int, matrices) -> Any:
    """The sum of each matrix times the lines of its term along an axis."""
    if any(map(scipy.sparse.issparse, matrices)):
        pairs = zip(terms, matrices, strict=True)
        return sum(product_along(x, axis, matrix) for x, matrix in pairs)
    lines = ops.concatenate(terms, axis=axis)
    return product_along(lines, axis, np.concatenate(matrices, axis=1))


def _by_tiles(lines, matrix):
    """Of a matrix with few entries in each row, near the diagonal.

    A tile of its rows sees some inputs beside those of its own, so that the cost of an
    output does not grow with the length of the axis.
    """
    blocks, own, before = _tiles(matrix)
    tiles, _, seen = blocks.shape
    copies, size = seen // own, lines.shape[1]
    after = own * (tiles + copies - 1) - before - size
    lines = ops.pad(lines, [[0, 0], [before, max(after, 0)], [0, 0]])
    parts = [
        ops.reshape(
            lines[:, own * k : own * (k + tiles)], (-1, tiles, own, lines.shape[2])
        )
        for k in range(copies)
    ]
    blocks = ops.convert_to_tensor(blocks, lines.dtype)
    y = ops.matmul(blocks, ops.concatenate(parts, axis=2))
    return ops.reshape(y, (-1, tiles * blocks.shape[1], lines.shape[2]))[
        :, : matrix.shape[0]
    ]


def _tiles(matrix) -> tuple[np.ndarray, int, int]:
    """The matrix in tiles of its rows.

    Returns:
        Tiles `(tiles, rows, seen)`, how many inputs a tile has of its own, and how many
        the first one sees before those.
    """
    entries, outputs = matrix.tocoo(), matrix.shape[0]
    seen_by_row = np.bincount(entries.row, minlength=outputs)
    center = np.bincount(entries.row, entries.col, outputs) / np.maximum(seen_by_row, 1)
    low, high = outputs // 4, 3 * outputs // 4
    slope = (center[high] - center[low]) / (high - low)  # h, or 1 / h
    own_rows, own = (1, round(slope)) if slope > 0.75 else (round(1 / slope), 1)
    times = max(1, round(np.median(seen_by_row) / own))  # as much as a kernel sees
    own_rows, own = own_rows * times, own * times
    tiles = math.ceil(outputs / own_rows)
    tile, row = np.divmod(entries.row, own_rows)
    column = entries.col - own * tile
    before = max(0, -column.min())
    seen = own * math.ceil((column.max() + before + 1) / own)
    blocks = np.zeros((tiles, own_rows, seen))
    blocks[tile, row, column + before] = entries.data
    return blocks, own, before
