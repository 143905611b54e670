"""Products with banded matrices, tile by tile.

Where σ is small against an axis, an operator has few entries in each row, next to the
diagonal. A tile of `b` outputs then sees `b + 2 R` inputs, and its cost does not grow
with the length of the axis.
"""

from typing import NamedTuple

import numpy as np
from keras import ops

# Below this length, or where tiles overlap more, copying their inputs costs more than
# it saves (`python benchmarks/run.py layers`).
_LEAST_LENGTH = 80
_LARGEST_SHARE = 0.3


class Tiles(NamedTuple):
    """Matrices along an axis, cut into tiles of equal shape.

    Attributes:
        columns: Which inputs each tile sees, `(tiles, width)`.
        blocks: `(matrices, tiles, rows, width)`; rows beyond the last output are zero.
        outputs: Rows of the matrices.
    """

    columns: np.ndarray
    blocks: np.ndarray
    outputs: int

    def product(self, values, dtype, front: int, summed: bool):
        """The matrices times lines `(…, size, behind)` that `front` axes lie before.

        Args:
            values: Lines; with a further axis in front, one term for each matrix, if
                `summed`.
            dtype: That of the result.
            front: 0 or 1.
            summed: Whether the products are added up.

        Returns:
            `(…, outputs, behind)`, with an axis for the matrices in front if they are
            several and not summed.
        """
        tiles, width = self.columns.shape
        axis = front + (summed and len(self.blocks) > 1)
        shape = ops.shape(values)
        seen = ops.take(values, self.columns.reshape(-1), axis=axis)
        seen = ops.reshape(seen, (*shape[:axis], tiles, width, *shape[axis + 1 :]))
        blocks = self.blocks if len(self.blocks) > 1 else self.blocks[0]
        if front:
            blocks = np.expand_dims(blocks, -4)
        y = ops.matmul(ops.convert_to_tensor(blocks, dtype), seen)
        if summed and len(self.blocks) > 1:
            y = ops.sum(y, axis=0)
        leading = ops.shape(y)[:-3]
        y = ops.reshape(y, (*leading, tiles * blocks.shape[-2], shape[-1]))
        return y[..., : self.outputs, :]


def tiled(matrices: list) -> Tiles | None:
    """The matrices as tiles, if they are constants and tiles are worth it."""
    if not isinstance(matrices[0], np.ndarray):
        return None
    outputs, size = matrices[0].shape
    if min(outputs, size) < _LEAST_LENGTH:
        return None
    entries = np.any(np.stack(matrices), axis=0)
    first = np.argmax(entries, axis=1)
    last = size - 1 - np.argmax(entries[:, ::-1], axis=1)
    # About as many as the kernel is wide: half of what a tile sees.
    rows = 8 * int(np.clip(round(np.median(last - first) / 8), 2, 8))
    starts = np.arange(0, outputs, rows)
    begin = np.minimum.reduceat(first, starts)
    width = int((np.maximum.reduceat(last, starts) - begin).max()) + 1
    if width > _LARGEST_SHARE * size:
        return None
    columns = np.minimum(begin, size - width)[:, None] + np.arange(width)
    padded = np.zeros((len(matrices), len(starts) * rows, size))
    padded[:, :outputs] = matrices
    row = np.arange(len(starts) * rows).reshape(len(starts), rows, 1)
    return Tiles(columns, padded[:, row, columns[:, None, :]], outputs)
