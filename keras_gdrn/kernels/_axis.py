"""The kernels as matrices along one axis."""

import dataclasses
import math

import numpy as np
import scipy.sparse

from keras_gdrn._checks import check_choice
from keras_gdrn.kernels._discrete import (
    gaussian_derivative,
    half_pixel_derivative,
    support_radius,
)

BOUNDARIES = ("zero", "symmetric")


@dataclasses.dataclass(frozen=True)
class Samples:
    """Where the values of a map lie along an axis, around the center of the image.

    Attributes:
        count: Their number.
        spacing: Distance of neighbors, in pixels. If it is 1 they are pixels.
        influence: A value at distance `p` from the center, in pixels, has the weight
            `exp(-p² / (2 influence²))` in the answer; by default all weigh the same.
        least_weight: The weight that none falls below: dividing by smaller ones would
            amplify what has been left out, and rounding.
    """

    count: int
    spacing: float = 1
    influence: float = math.inf
    least_weight: float = 0.01

    @property
    def start(self) -> float:
        """The first position."""
        return -self.spacing * (self.count - 1) / 2

    @property
    def positions(self) -> np.ndarray:
        """In pixels from the center."""
        return self.start + self.spacing * np.arange(self.count)

    @property
    def weights(self) -> np.ndarray:
        weights = np.exp(-0.5 * (self.positions / self.influence) ** 2)
        return np.maximum(weights, self.least_weight)

    def are_all_of(self, pixels: int) -> bool:
        """Whether they are all pixels of an axis, and weigh the same."""
        return (self.count, self.spacing, self.influence) == (pixels, 1, math.inf)


def axis_operator(
    size: int, sigma: float, order: int, boundary: str, step: float = 1.0
) -> np.ndarray:
    """Matrix `K_order` that applies the 1-D kernel along an axis of `size` pixels.

    Args:
        size: Number of pixels along the axis.
        sigma: Standard deviation σ in pixels.
        order: Order of differentiation, at least 0.
        boundary: `"zero"` (pixels outside the image are zero) or `"symmetric"`
            (half-sample mirror: `x[-1 - n] = x[n]`, repeated as often as needed).
        step: As for `gaussian_derivative`.

    Returns:
        A float64 array `(size, size)`: `K @ x` is the response to the signal `x`.

    Raises:
        ValueError: If an argument is out of its range.
    """
    return stencils(size, size, sigma, order, boundary, step)[-1].matrix().toarray()


def sampled_operator(
    entering: Samples,
    leaving: Samples,
    pixels: int,
    sigma: float,
    order: int,
    boundary: str,
    tail: float = 0.0,
) -> scipy.sparse.csr_array:
    """Matrix that applies the 1-D kernel to samples, and gives it at others.

    The kernel on the pixels is a sum over them. Where a map is smooth, the sum over
    every second or fourth pixel, times their spacing, is the same to the accuracy with
    which the map is sampled (the trapezoidal rule). At the ends of the axis a sample
    counts for the part of its surroundings that is inside.

    Args:
        entering: Samples of the input.
        leaving: Samples of the output, also outside of the image.
        pixels: Pixels of the axis that they are samples of.
        sigma: Standard deviation σ in pixels, at least the spacings.
        order: Order of differentiation, at least 0.
        boundary: As for `axis_operator`.
        tail: Sum of what may be left out at the ends of the kernel.

    Returns:
        A float64 array `(leaving.count, entering.count)`, of its nonzero entries.
    """
    check_choice("boundary", boundary, BOUNDARIES)
    distances = (entering.start - leaving.start, entering.spacing, leaving.spacing)
    unit = 1.0 if all(d == round(d) for d in distances) else 0.5
    if unit < 1:
        kernel = half_pixel_derivative(sigma, order)
    else:
        kernel = gaussian_derivative(sigma, order, support_radius(sigma) + order)
    kernel = trimmed(kernel, _radius(kernel, tail))
    radius, h = len(kernel) // 2, entering.spacing
    first, half = entering.positions, pixels / 2
    inside = np.minimum(first + h / 2, half) - np.maximum(first - h / 2, -half)
    images = [(1, 0)]
    if boundary == "symmetric":
        copies = math.ceil(radius * unit / (2 * pixels)) + 1
        periods = 2 * pixels * np.arange(-copies, copies + 1)
        images = [*((1, p) for p in periods), *((-1, p + pixels) for p in periods)]
    near = np.arange(min(entering.count, math.floor(2 * radius * unit / h) + 1))
    operator = scipy.sparse.csr_array((leaving.count, entering.count))
    for sign, shift in images:
        # Those that the kernel reaches: their images lie at `sign * position + shift`.
        center = (sign * (leaving.positions - shift) - entering.start) / h
        column = np.ceil(center - radius * unit / h - 1e-9).clip(0).astype(int)
        column = np.minimum(column, entering.count - len(near))[:, None] + near
        distance = sign * first[column] + shift - leaving.positions[:, None]
        index = np.rint(distance / unit).astype(int)
        values = kernel[np.clip(index + radius, 0, len(kernel) - 1)]
        values = inside[column] * np.where(abs(index) <= radius, values, 0)
        at = (np.repeat(np.arange(leaving.count), len(near)), column.ravel())
        entries = (values.ravel(), at)
        operator = operator + scipy.sparse.coo_array(entries, shape=operator.shape)
    return operator


@dataclasses.dataclass(frozen=True, eq=False)
class Stencil:
    """A kernel that slides along an axis, as a matrix of few entries in each row.

    Attributes:
        kernel: Of odd length, as a correlation.
        pixels: Length of the axis.
        mirrored: Whether the mirror image lies beyond the ends of the axis, or zeros.
        entering: Pixels at each end of the axis that the input lacks, and are zero.
        leaving: Pixels at each end of the axis that the output lacks.
    """

    kernel: np.ndarray
    pixels: int
    mirrored: bool
    entering: int = 0
    leaving: int = 0

    @property
    def radius(self) -> int:
        return len(self.kernel) // 2

    @property
    def shape(self) -> tuple[int, int]:
        return self.pixels - 2 * self.leaving, self.pixels - 2 * self.entering

    @property
    def T(self) -> "Stencil":
        """The transposed matrix, of an even kernel."""
        ends = {"entering": self.leaving, "leaving": self.entering}
        return dataclasses.replace(self, **ends)

    def matrix(self) -> scipy.sparse.csr_array:
        rows, pixels = self.shape[0], self.pixels
        row = np.arange(rows)[:, None]
        place = row + self.leaving + np.arange(-self.radius, self.radius + 1)
        folded = place % (2 * pixels)
        column = np.minimum(folded, 2 * pixels - 1 - folded)
        there = (place == column) | self.mirrored
        column = column - self.entering
        there &= (column >= 0) & (column < self.shape[1])
        values = np.broadcast_to(self.kernel, there.shape)[there]
        at = (np.broadcast_to(row, there.shape)[there], column[there])
        return scipy.sparse.coo_array((values, at), shape=self.shape).tocsr()


def stencils(
    pixels: int,
    outputs: int,
    sigma: float,
    order: int,
    boundary: str,
    step: float = 1.0,
    tail: float = 0.0,
) -> list[Stencil]:
    """`K_0, …, K_order` as stencils of one radius.

    Args:
        pixels: Length of the axis.
        outputs: Pixels around the center at which the response is given.
        sigma, boundary, step: As for `axis_operator`.
        order: Highest order of differentiation.
        tail: Sum of what may be left out at the ends of each kernel.

    Returns:
        A `Stencil` for each order.

    Raises:
        ValueError: If the axis has no pixels, or an argument is out of its range.
    """
    check_choice("boundary", boundary, BOUNDARIES)
    if pixels < 1:
        raise ValueError(f"`size` must be >= 1. Received: size={pixels}")
    reach = support_radius(sigma, step) + order
    kernels = [gaussian_derivative(sigma, a, reach, step) for a in range(order + 1)]
    radius = max(_radius(kernel, tail) for kernel in kernels)
    return [
        Stencil(
            trimmed(kernel, radius),
            pixels,
            mirrored=boundary == "symmetric",
            leaving=(pixels - outputs) // 2,
        )
        for kernel in kernels
    ]


def _radius(kernel: np.ndarray, tail: float) -> int:
    """Radius beyond which the kernel sums to no more than `tail`."""
    middle = len(kernel) // 2
    outwards = np.abs(kernel[middle:]) + np.abs(kernel[middle::-1])
    sums = np.cumsum(outwards[::-1])[::-1]
    return max(int(np.count_nonzero(sums > tail)) - 1, 0)


def trimmed(kernel: np.ndarray, radius: int) -> np.ndarray:
    """Without its ends; in all it sums up to the same."""
    middle = len(kernel) // 2
    cut = kernel[middle - radius : middle + radius + 1].copy()
    cut[radius] += kernel.sum() - cut.sum()
    return cut
