"""Products with sparse matrices, tile by tile.

The operators of a long axis have few entries in each row, near the diagonal. A tile of
`b` outputs then sees `b + 2 R` inputs, and its cost does not grow with the length of
the axis.
"""

import numpy as np
import scipy.sparse
from keras import ops

# Of the axis: copying the inputs of larger tiles costs more than it saves.
_LARGEST_SHARE = 0.5


def by_tiles(x, matrix: scipy.sparse.sparray):
    """The matrix times lines along axis 1.

    Args:
        x: `(in front, size, behind, everything else)`.
    """
    columns, blocks = _tiles(matrix)
    tiles, rows, width = blocks.shape
    front, size, behind, rest = ops.shape(x)
    x = ops.reshape(x, (front, size, -1))
    if width > _LARGEST_SHARE * size:
        y = ops.matmul(ops.convert_to_tensor(matrix.toarray(), x.dtype), x)
    else:
        seen = ops.take(x, columns.reshape(-1), axis=1)
        seen = ops.reshape(seen, (front, tiles, width, -1))
        y = ops.matmul(ops.convert_to_tensor(blocks, x.dtype), seen)
        y = ops.reshape(y, (front, tiles * rows, -1))[:, : matrix.shape[0]]
    return ops.reshape(y, (front, matrix.shape[0], behind, rest))


def _tiles(matrix: scipy.sparse.sparray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix cut into tiles of equal shape.

    Returns:
        Which inputs each tile sees, `(tiles, width)`, and the tiles, of shape
        `(tiles, rows, width)`; rows beyond the last output are zero.
    """
    entries, (outputs, size) = matrix.tocoo(), matrix.shape
    first, last = np.full(outputs, size), np.zeros(outputs, int)
    np.minimum.at(first, entries.row, entries.col)
    np.maximum.at(last, entries.row, entries.col)
    # As long as a kernel is wide: half of what a tile sees.
    kernel = np.median(last - first) * outputs / size
    rows = 8 * int(np.clip(round(kernel / 8), 2, 8))
    starts = np.arange(0, outputs, rows)
    begin = np.minimum.reduceat(first, starts)
    width = int((np.maximum.reduceat(last, starts) - begin).max()) + 1
    begin = np.minimum(begin, size - width)
    blocks = np.zeros((len(starts), rows, width))
    tile = entries.row // rows
    blocks[tile, entries.row % rows, entries.col - begin[tile]] = entries.data
    return begin[:, None] + np.arange(width), blocks
