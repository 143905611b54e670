"""Products with sparse matrices, tile by tile.

The operators of a long axis have few entries in each row, near the diagonal. A tile of
`b` outputs then sees `b + 2 R` inputs, and its cost does not grow with the length of
the axis.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from keras import ops

# As many operations on their own are paid for by what they need not copy.
_FEW_TILES = 32


def by_tiles(x, matrices: Sequence[scipy.sparse.sparray]):
    """Each of the matrices times lines along axis 1, stacked.

    Args:
        x: `(in front, size, behind, everything else)`.
    """
    columns, blocks = _tiles(matrices)
    front, _, behind, rest = ops.shape(x)
    if len(matrices) == 1 and _is_in_one_piece(front, columns):
        y = _by_parts([x], columns, blocks)[None]
    else:
        blocks = ops.convert_to_tensor(blocks[:, None], x.dtype)
        y = ops.matmul(blocks, _seen(x, columns))
    y = _without_excess(y, (len(matrices), front), matrices[0].shape[0])
    return ops.reshape(y, (len(matrices), front, -1, behind, rest))


def summed_by_tiles(terms: Sequence, matrices: Sequence[scipy.sparse.sparray]):
    """The sum of each matrix times the lines of its term along axis 1."""
    columns, blocks = _tiles(matrices)
    front, size, behind, rest = ops.shape(terms[0])
    if _is_in_one_piece(front, columns):
        y = _by_parts(terms, columns, blocks)
    else:
        # The lines of all terms end to end, and so what a tile sees of them.
        columns = [columns + size * k for k in range(len(terms))]
        seen = _seen(ops.concatenate(terms, axis=1), np.concatenate(columns, axis=1))
        blocks = np.concatenate(blocks, axis=-1)
        y = ops.matmul(ops.convert_to_tensor(blocks, seen.dtype), seen)
    y = _without_excess(y, (front,), matrices[0].shape[0])
    return ops.reshape(y, (front, -1, behind, rest))


def _is_in_one_piece(front, columns: np.ndarray) -> bool:
    """Whether what each tile sees lies in one piece."""
    return isinstance(front, int) and front == 1 and len(columns) <= _FEW_TILES


def _by_parts(terms: Sequence, columns: np.ndarray, blocks: np.ndarray):
    """Tile after tile, of a leading axis: not all that they see has to be copied."""
    lines = [ops.reshape(term, (ops.shape(term)[1], -1)) for term in terms]
    y = []
    for tile, (first, *_, last) in enumerate(columns):
        parts = ops.concatenate([term[first : last + 1] for term in lines])
        block = np.concatenate(blocks[:, tile], axis=-1)
        y.append(ops.matmul(ops.convert_to_tensor(block, parts.dtype), parts))
    return ops.concatenate(y)[None, None]


def _seen(x, columns: np.ndarray):
    """`(in front, tiles, width, everything else)`."""
    x = ops.reshape(x, (*ops.shape(x)[:2], -1))
    if len(columns) == 1:
        return x[:, None]
    x = ops.take(x, columns.reshape(-1), axis=1)
    return ops.reshape(x, (-1, *columns.shape, x.shape[-1]))


def _without_excess(y, front: tuple, outputs: int):
    """The rows of all tiles, without those beyond the last output."""
    tiles, rows = y.shape[-3:-1]
    y = ops.reshape(y, (*front, tiles * rows, -1))
    return y if tiles * rows == outputs else y[..., :outputs, :]


def _tiles(
    matrices: Sequence[scipy.sparse.sparray],
) -> tuple[np.ndarray, np.ndarray]:
    """Matrices cut into tiles of equal shape.

    Returns:
        Which inputs each tile sees, `(tiles, width)`, and the tiles, of shape
        `(matrices, tiles, rows, width)`; rows beyond the last output are zero.
    """
    entries, (outputs, size) = [m.tocoo() for m in matrices], matrices[0].shape
    first, last = np.full(outputs, size), np.zeros(outputs, int)
    for of_matrix in entries:
        np.minimum.at(first, of_matrix.row, of_matrix.col)
        np.maximum.at(last, of_matrix.row, of_matrix.col)
    # As long as a kernel is wide: half of what a tile sees.
    kernel = np.median(last - first) * outputs / size
    rows = _rows(outputs, int(np.clip(kernel, 16, 64)))
    starts = np.arange(0, outputs, rows)
    begin = np.minimum.reduceat(first, starts)
    width = int((np.maximum.reduceat(last, starts) - begin).max()) + 1
    if 2 * width > size:  # copying it would cost more than it saves
        starts, rows, width = starts[:1], outputs, size
    begin = np.minimum(begin[: len(starts)], size - width)
    blocks = np.zeros((len(matrices), len(starts), rows, width))
    for block, of_matrix in zip(blocks, entries, strict=True):
        tile, row = np.divmod(of_matrix.row, rows)
        block[tile, row, of_matrix.col - begin[tile]] = of_matrix.data
    return begin[:, None] + np.arange(width), blocks


def _rows(outputs: int, wanted: int) -> int:
    """The nearest number that leaves no rest, if one is near; else there are excess."""
    near = range(wanted // 2 + 1, 2 * wanted)
    exact = [rows for rows in near if outputs % rows == 0]
    return min(exact, key=lambda rows: abs(rows - wanted), default=min(wanted, outputs))
