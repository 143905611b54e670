"""Grids of points around the center of an image."""

import dataclasses
import math
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Grid:
    """Points around the center of the image."""

    halves: tuple[int, ...]  # points on either side of the central one, for each axis
    step: float  # between points

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(2 * half + 1 for half in self.halves)

    def is_same(self, other: "Grid") -> bool:
        """Whether grids are equal; sizes known only in the graph follow the step."""
        known = all(isinstance(half, int) for half in self.halves)
        return self.step == other.step and (not known or self.halves == other.halves)

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


def cropped(x, grid: Grid, target: Grid):
    """The values of a map at the points of a smaller grid of the same step."""
    if grid.is_same(target):
        return x
    starts = [a - b for a, b in zip(grid.halves, target.halves, strict=True)]
    ends = zip(starts, target.sizes, strict=True)
    return x[(slice(None), *(slice(start, start + size) for start, size in ends))]
