"""Grids of points around the center of an image."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Grid:
    """Points around the center of the image.

    Attributes:
        halves: Points on either side of the central one, along each axis.
        step: Their distance.
    """

    halves: tuple[int, ...]
    step: float

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(2 * half + 1 for half in self.halves)

    def is_same(self, other: "Grid") -> bool:
        """Also where only the graph knows the sizes, which then go by the step."""
        known = all(isinstance(half, int) for half in self.halves)
        return self.step == other.step and (not known or self.halves == other.halves)

    def widened(self, points: int) -> "Grid":
        return Grid(tuple(half + points for half in self.halves), self.step)

    def within(self, other: "Grid") -> "Grid":
        """As many of its points as lie within another grid."""
        limits = (math.floor(h * other.step / self.step) for h in other.halves)
        return Grid(tuple(map(min, self.halves, limits)), self.step)


def subsampled(x, grid: Grid, target: Grid):
    """The values of a map at the points of a coarser or smaller grid."""
    if grid.is_same(target):
        return x
    stride = round(target.step / grid.step)
    starts = [
        there - stride * here
        for there, here in zip(grid.halves, target.halves, strict=True)
    ]
    parts = (
        slice(start, start + stride * (size - 1) + 1, stride)
        for start, size in zip(starts, target.sizes, strict=True)
    )
    return x[(slice(None), *parts)]
