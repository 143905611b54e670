"""Grids of points around the center of an image, and maps at these points."""

import dataclasses
import math
from collections.abc import Iterable

from keras import ops

from keras_gdrn.layers._matrices import sampling
from keras_gdrn.layers._products import matmul_along_axes


@dataclasses.dataclass(frozen=True)
class Grid:
    """Points around the center of the image."""

    halves: tuple[int, ...]  # points on either side of the central one, for each axis
    step: float  # between points

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(2 * half + 1 for half in self.halves)

    def widened(self, points: int) -> "Grid":
        return Grid(tuple(half + points for half in self.halves), self.step)

    def within(self, others: Iterable["Grid"]) -> "Grid":
        """The grid, cut to the points within all other grids."""
        halves = self.halves
        for other in others:
            ratio = other.step / self.step
            limits = (math.floor(half * ratio + 1e-6) for half in other.halves)
            halves = tuple(map(min, halves, limits))
        return Grid(halves, self.step)


def covering(sizes, sigma0: float, step: float) -> Grid:
    """The smallest grid of an initial scale that covers an image."""
    return Grid(tuple(_rounded_up(size, 2 * sigma0 * step) for size in sizes), step)


def _rounded_up(size, unit: float):
    """Number of units that cover `size`, which may be known only in the graph."""
    if isinstance(size, int):
        return math.ceil(size / unit - 1e-6)
    return ops.cast(ops.ceil(ops.cast(size, "float32") / unit - 1e-5), "int32")


def sampled(images, grid: Grid, scales, boundary: str, sigma=0.0, start=0.0):
    """Images at the points of a grid at each of its initial scales, in one batch.

    They are smoothed by `sigma`, in units of the initial scale; `start` is the value
    that a learned `sigma` had at first.
    """

    def at_scale(sigma0: float):
        lengths = sigma0 * grid.step, sigma0 * sigma
        matrices = [
            sampling(pixels, points, *lengths, boundary, sigma0 * start)
            for pixels, points in zip(ops.shape(images)[1:-1], grid.sizes, strict=True)
        ]
        return matmul_along_axes(images, matrices)

    return ops.concatenate([at_scale(sigma0) for sigma0 in scales])


def interpolated(x, sizes, step: float):
    """The cubic spline through a map at `sizes` points, `step` of its steps apart."""
    matrices = [
        sampling(size, points, step, 0.0, "symmetric")
        for size, points in zip(ops.shape(x)[1:-1], sizes, strict=True)
    ]
    return matmul_along_axes(x, matrices)


def at_points(x, grid: Grid, target: Grid):
    """The values of a map at the points of a smaller grid, which may be coarser."""
    if grid.step != target.step:
        return interpolated(x, target.sizes, target.step / grid.step)
    starts = [a - b for a, b in zip(grid.halves, target.halves, strict=True)]
    if all(isinstance(start, int) and start == 0 for start in starts):
        return x
    sizes = zip(starts, target.sizes, strict=True)
    return x[(slice(None), *(slice(start, start + size) for start, size in sizes))]
