"""The kernels as matrices along one axis, whole and in low-rank form."""

import dataclasses
import math
import threading
from typing import Any

import cachetools
import numpy as np

from keras_gdrn._checks import check_choice
from keras_gdrn.kernels._discrete import (
    gaussian_derivative,
    half_pixel_derivative,
    support_radius,
)

BOUNDARIES = ("zero", "symmetric")

# The tails of a Gaussian end in numbers that float32 cannot hold in full. Where these
# are not taken for zero, as in onnxruntime, products with them take some times as long.
_VANISHED = 1e-20

# Above this share of the axis length, the extra product that enters or leaves the
# low-rank basis costs more than the smaller channel mix saves.
_WORTHWHILE_RANK = 0.85

# Along so long an axis it is worth it to leave out the tails of narrow kernels.
_LONG = 80

# Enough for the whole networks of the paper at several image sizes.
_CACHED_BYTES = 512 * 2**20


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
    spacing: int = 1
    influence: float = math.inf
    least_weight: float = 0.01

    @property
    def positions(self) -> np.ndarray:
        """In pixels from the center."""
        return self.spacing * (np.arange(self.count) - (self.count - 1) / 2)

    @property
    def weights(self) -> np.ndarray:
        weights = np.exp(-0.5 * (self.positions / self.influence) ** 2)
        return np.maximum(weights, self.least_weight)


@dataclasses.dataclass(frozen=True, eq=False)
class AxisFactors:
    """Low-rank form `K_a ≈ synthesis @ jets[a] @ analysis` of one axis's operators.

    Attributes:
        analysis: `(coefficients, size)`, or `None` for the identity.
        jets: `K_a` between coefficients, `(outputs, inputs)` for each order `a`.
        synthesis: `(outputs of the axis, coefficients)`, or `None` for the identity.
    """

    analysis: Any
    jets: Any
    synthesis: Any

    @property
    def size(self) -> int:
        """Positions of the input."""
        return (self.jets[0] if self.analysis is None else self.analysis).shape[1]

    @property
    def outputs(self) -> int:
        """Positions of the output."""
        return (self.jets[0] if self.synthesis is None else self.synthesis).shape[0]

    @property
    def ranks(self) -> tuple[int, int]:
        """Coefficients of the input and of the output."""
        outputs, inputs = self.jets[0].shape
        return inputs, outputs

    @property
    def adjoint(self) -> "AxisFactors":
        """The factors of `K_aᵀ`."""
        analysis, synthesis = (
            None if matrix is None else matrix.T
            for matrix in (self.synthesis, self.analysis)
        )
        return AxisFactors(analysis, [jet.T for jet in self.jets], synthesis)

    @property
    def nbytes(self) -> int:
        matrices = (self.analysis, *self.jets, self.synthesis)
        return sum(matrix.nbytes for matrix in matrices if matrix is not None)


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
    check_choice("boundary", boundary, BOUNDARIES)
    if size < 1:
        raise ValueError(f"`size` must be >= 1. Received: size={size}")
    pixels = np.arange(size)
    if boundary == "zero":
        kernel = gaussian_derivative(sigma, order, size - 1, step)
        return kernel[pixels[None, :] - pixels[:, None] + size - 1]
    radius = support_radius(sigma, step) + order
    kernel = gaussian_derivative(sigma, order, radius, step)
    position = pixels[:, None] + np.arange(-radius, radius + 1)
    folded = position % (2 * size)
    column = np.minimum(folded, 2 * size - 1 - folded)
    operator = np.zeros((size, size))
    np.add.at(operator, (pixels[:, None], column), kernel)
    return operator


def sampled_operator(
    entering: Samples, leaving: Samples, pixels: int, sigma: float, order: int, boundary
) -> np.ndarray:
    """Matrix that applies the 1-D kernel to samples, and gives it at others.

    The kernel on the pixels is a sum over them. Where a map is smooth, the sum over
    every second or fourth pixel, times their spacing, is the same to the accuracy with
    which the map is sampled (the trapezoidal rule). At the ends of the axis a sample
    counts for the part of its surroundings that is inside.

    Args:
        entering: Samples of the input.
        leaving: Samples of the output.
        pixels: Pixels of the axis that they are samples of.
        sigma: Standard deviation σ in pixels, at least the spacings.
        order: Order of differentiation, at least 0.
        boundary: As for `axis_operator`.

    Returns:
        A float64 array `(leaving.count, entering.count)`.
    """
    half, reach = pixels / 2, entering.spacing / 2
    at, positions = leaving.positions[:, None], entering.positions[None, :]
    inside = np.minimum(positions + reach, half) - np.maximum(positions - reach, -half)
    kernel = half_pixel_derivative(sigma, order)
    radius = len(kernel) // 2

    def response(positions):
        index = np.rint(2 * (positions - at)).astype(int)
        return np.where(abs(index) <= radius, kernel[(index + radius) % len(kernel)], 0)

    if boundary == "zero":
        return inside * response(positions)
    copies = math.ceil(radius / (4 * pixels)) + 1
    periods = 2 * pixels * np.arange(-copies, copies + 1)
    images = (response(positions + period) for period in periods)
    mirrored = (response(pixels - positions + period) for period in periods)
    return inside * (sum(images) + sum(mirrored))


@cachetools.cached(
    cachetools.LRUCache(_CACHED_BYTES, getsizeof=lambda factors: factors.nbytes),
    lock=threading.Lock(),
)
def axis_factors(
    size: int,
    sigma: float,
    order: int,
    boundary: str,
    epsilon: float,
    entering: Samples | None = None,
    leaving: Samples | None = None,
    step: float = 1.0,
) -> AxisFactors:
    """Shared low-rank factors of `K_0, …, K_order` along one axis.

    The columns of `synthesis` span the leading left singular vectors of
    `[K_0 | … | K_order]`, the rows of `analysis` the leading right singular vectors of
    the same matrices stacked vertically; singular values below `epsilon` times the
    largest are dropped. A signal is thus represented by about `1.55 size / sigma`
    coefficients (at `epsilon = 1e-3`). Where there are not many fewer of them than
    values, on the side of the input or of the output, that side is left as it is.

    Guarantee: the spectral norm of `G (K_a - synthesis jets[a] analysis)` is at most
    `epsilon` times the sum of the norms of `G [K_0 | K_1 | …]` and of `G K_0`, `G K_1`,
    … stacked vertically, where `G` weights each output by its influence on the answer.

    Args:
        size: Number of pixels along the axis.
        sigma: Standard deviation σ in pixels.
        order: Highest order of differentiation.
        boundary: As for `axis_operator`.
        epsilon: Relative tolerance, in (0, 1).
        entering: Samples of the input; by default all pixels.
        leaving: Samples of the output, around the same center; by default all pixels.
        step: As for `gaussian_derivative`; less than 1 only between pixels.

    Returns:
        `AxisFactors` of read-only arrays. The same arguments give the same object.
    """
    entering, leaving = entering or Samples(size), leaving or Samples(size)
    orders = range(order + 1)
    if entering.spacing == leaving.spacing == 1:
        margin = (size - leaving.count) // 2
        rows = slice(margin, margin + leaving.count)
        matrices = [axis_operator(size, sigma, a, boundary, step)[rows] for a in orders]
    else:
        axis = (entering, leaving, size, sigma)
        matrices = [sampled_operator(*axis, a, boundary) for a in orders]
    operators, weights = np.stack(matrices), leaving.weights[:, None]
    weighted = weights * operators
    left = _leading_basis(np.concatenate(weighted, axis=1), epsilon)
    right = _leading_basis(np.concatenate(weighted, axis=0).T, epsilon)
    jets, analysis, synthesis = operators, None, None
    if left.shape[1] < _WORTHWHILE_RANK * leaving.count:
        jets = left.T @ (weights * jets)
        synthesis = _frozen(left / weights)
    if right.shape[1] < _WORTHWHILE_RANK * entering.count:
        jets = jets @ right
        analysis = _frozen(right.T)
    if analysis is None and synthesis is None and size >= _LONG:
        largest = float(np.linalg.norm(weighted[0], 2))
        jets = _banded(jets, 0.005 * epsilon * largest)
    return AxisFactors(analysis, _frozen(jets), synthesis)


def _banded(operators: np.ndarray, tail: float) -> np.ndarray:
    """Without what lies so far from the diagonal that it sums to less than `tail`.

    Its sum is put on the diagonal: what an operator makes of a constant stays.
    """
    outputs, size = operators.shape[1:]
    row, column = np.arange(outputs)[:, None], np.arange(size)
    distance = np.abs(column - row - (size - outputs) // 2)
    far = size
    while far and np.abs(operators * (distance >= far)).sum(axis=2).max() <= tail:
        far -= 1
    lost = np.where(distance > far, operators, 0.0).sum(axis=2, keepdims=True)
    return operators * (distance <= far) + lost * (distance == 0)


def _leading_basis(matrix: np.ndarray, epsilon: float) -> np.ndarray:
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, values > epsilon * values[0]]


def _frozen(array: np.ndarray) -> np.ndarray:
    # The cache hands the same array to every layer.
    array = np.where(np.abs(array) < _VANISHED, 0.0, array)
    array.setflags(write=False)
    return array
