"""The operators of an axis in low-rank form."""

import dataclasses
import itertools
import math
import threading
from typing import Any, NamedTuple

import cachetools
import numpy as np
import scipy.sparse

from keras_gdrn.kernels._axis import (
    Samples,
    Stencil,
    sampled_operator,
    stencils,
    trimmed,
)
from keras_gdrn.kernels._discrete import central_difference, fourier_response

# Above this share of the axis length, the extra product that enters or leaves the
# low-rank basis costs more than the smaller channel mix saves.
_WORTHWHILE_RANK = 0.85

# Up to this share of the length, few coefficients are faster than what is `composed`.
_FEW_COEFFICIENTS = 0.55

# Of the tolerance: what may be left out at the ends of kernels. More would save a tap,
# and be the largest error of layers at fine scales, which have none otherwise.
_TAIL = 0.02

# From this length on the factors are sparse, so that a pixel costs the same however
# long the axis is: on shorter ones, dense products are faster.
LONG_AXIS = 256

# Up to this σ, in pixels, differences of smoothed values are as good as their kernels:
# they magnify what is lost by rounding by up to 4 σ².
_LITTLE_MAGNIFIED = 2.5

# Enough for the whole networks of the paper at several image sizes.
_CACHED_BYTES = 512 * 2**20


class _Axis(NamedTuple):
    """What `axis_factors` is asked for, but for its tolerance."""

    entering: Samples
    leaving: Samples
    pixels: int
    sigma: float
    order: int
    boundary: str
    step: float = 1.0

    def operators(self, tail: float = 0.0) -> list[scipy.sparse.csr_array]:
        """`K_0, …, K_order` between samples."""
        entering, leaving, pixels, sigma, order, boundary, _ = self
        if entering.spacing == leaving.spacing == 1:
            kernels = stencils(pixels, leaving.count, *self[3:], tail)
            return [stencil.matrix() for stencil in kernels]
        return [
            sampled_operator(entering, leaving, pixels, sigma, a, boundary, tail)
            for a in range(order + 1)
        ]


class Differences(NamedTuple):
    """`K_a` as the difference `σ^a δ^a` of what `T`, which is narrow, has smoothed."""

    smoothing: Stencil
    orders: tuple[np.ndarray, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class AxisFactors:
    """Low-rank form `K_a ≈ synthesis @ jets[a] @ analysis` of one axis's operators.

    All matrices are NumPy arrays, or, of long axes, SciPy's sparse ones.

    Attributes:
        analysis: `(coefficients, size)`, or `None` for the identity.
        jets: `K_a` between coefficients, `(outputs, inputs)` for each order `a`.
        synthesis: `(outputs of the axis, coefficients)`, or `None` for the identity.
        composed: `K_a` as differences of smoothed values, where kernels are narrow and
            that is as good; else `None`.
        late: Where it matters, a form that takes the derivatives in the product that
            leaves the coefficients; it is for the axis whose derivatives are taken
            last. Here they are taken in the one that enters them.
    """

    analysis: Any
    jets: Any
    synthesis: Any
    composed: Differences | None = None
    late: "AxisFactors | None" = None

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
        late = self.late.nbytes if self.late else 0
        return late + sum(_nbytes(matrix) for matrix in matrices if matrix is not None)


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

    Of a long axis, from `LONG_AXIS` on, the coefficients are samples of a smoothed
    signal, some `1.6 size / sigma`, and all matrices are sparse: a Gaussian is one of
    half its variance twice, and after the first of them few samples are enough for the
    second. Either of them can have the derivatives (`late`).

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
    axis = _Axis(entering, leaving, size, sigma, order, boundary, step)
    long = min(entering.count, leaving.count) >= LONG_AXIS
    factors = (_of_long_axis if long else _of_short_axis)(axis, epsilon)
    whole = step == 1 and all(ends.are_all_of(size) for ends in (entering, leaving))
    if whole and min(factors.ranks) > _FEW_COEFFICIENTS * size:
        composed = differences(size, sigma, order, boundary, epsilon)
        return dataclasses.replace(factors, composed=composed)
    return factors


def _of_short_axis(axis: _Axis, epsilon: float) -> AxisFactors:
    """Dense factors, by singular values."""
    operators = np.stack([matrix.toarray() for matrix in axis.operators()])
    weights = axis.leaving.weights[:, None]
    weighted = weights * operators
    left = _leading_basis(np.concatenate(weighted, axis=1), epsilon)
    right = _leading_basis(np.concatenate(weighted, axis=0).T, epsilon)
    jets, analysis, synthesis = operators, None, None
    if left.shape[1] < _WORTHWHILE_RANK * axis.leaving.count:
        jets = left.T @ (weights * jets)
        synthesis = _frozen(left / weights)
    if right.shape[1] < _WORTHWHILE_RANK * axis.entering.count:
        jets = jets @ right
        analysis = _frozen(right.T)
    return AxisFactors(analysis, _frozen(jets), synthesis)


def differences(
    pixels: int, sigma: float, order: int, boundary: str, epsilon: float
) -> Differences | None:
    """The kernels as differences of smoothed values, if that is as good.

    Args:
        pixels: Length of the axis.
        sigma, order, boundary, epsilon: As for `axis_factors`.

    Returns:
        `Differences`, or `None` if σ is large, the order beyond 2, or a kernel longer
        than the axis.
    """
    whole = stencils(pixels, pixels, sigma, order, boundary, tail=_TAIL * epsilon)
    if sigma > _LITTLE_MAGNIFIED or order > 2 or 2 * whole[0].radius >= pixels:
        return None
    # A difference reaches a pixel farther than what it is taken of.
    kernel = trimmed(whole[0].kernel, max(whole[0].radius - 1, 0))
    orders = (sigma**a * central_difference(a) for a in range(order + 1))
    smoothing = dataclasses.replace(whole[0], kernel=kernel)
    return Differences(smoothing, tuple(orders))


def _of_long_axis(axis: _Axis, epsilon: float) -> AxisFactors:
    """Factors of few entries in each row."""
    entering, leaving, *_, sigma, order, _, step = axis
    tail = _TAIL * epsilon
    on_pixels = entering.spacing == leaving.spacing == step == 1
    spacing = _spacing_between(sigma, order, epsilon) if on_pixels else 1
    if spacing == 1:
        return AxisFactors(None, axis.operators(tail), None)
    half = sigma / math.sqrt(2)
    # What is seen beyond the edges from there, mirrored or zero.
    margin = math.ceil(half * math.sqrt(-2 * math.log(tail))) + order
    count = math.ceil((leaving.count + 2 * margin) / spacing)
    # Odd, for one in the center, and such that it can be cut into equal tiles.
    odd = itertools.count(count | 1, 2)
    count = next(n for n in odd if any(n % tile == 0 for tile in (13, 15, 17, 19)))
    samples, reach = Samples(count, spacing), math.ceil(count * spacing)
    first = axis._replace(leaving=samples, sigma=half)
    second = _Axis(samples, leaving, reach, half, order, "zero")
    there, back = first.operators(tail), second.operators(tail)
    early, late = (
        [2 ** (a / 2) * jet for a, jet in enumerate(derived)]
        for derived in (there, back)
    )
    return AxisFactors(None, early, back[0], late=AxisFactors(there[0], late, None))


def _spacing_between(sigma: float, order: int, epsilon: float) -> float:
    """Largest distance of the samples between two Gaussians that make up one.

    Waves whose frequencies differ by multiples of `2π / spacing` are the same samples:
    the first Gaussian damps them, with its derivatives, and so does the second. What is
    left of them, in a matrix for each frequency of the samples, has to be below the two
    shares of `epsilon` that the guarantee has.
    """
    half, orders = sigma / math.sqrt(2), range(order + 1)
    theta = np.linspace(-np.pi, np.pi, 721)
    whole = [fourier_response(theta, sigma, a) for a in orders]
    allowed = 1.9 * epsilon * np.linalg.norm(whole, axis=0).max()
    for spacing in np.arange(math.floor(2 * sigma), 2, -1) / 2:
        reach = math.ceil(spacing / 2)
        waves = 2 * np.pi / spacing * np.arange(-reach, reach + 1)
        theta = np.linspace(0, np.pi / spacing, 33)[:, None] + waves
        first, *others = [
            (abs(theta) <= np.pi) * 2 ** (a / 2) * fourier_response(theta, half, a)
            for a in orders
        ]
        taken_for = first[:, :, None] * (1 - np.eye(len(waves)))
        folded = [taken_for * one[:, None, :] for one in (first, *others)]
        if np.linalg.norm(folded, axis=(2, 3)).max() <= allowed:
            return float(spacing)
    return 1.0


def _leading_basis(matrix: np.ndarray, epsilon: float) -> np.ndarray:
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, values > epsilon * values[0]]


def _nbytes(matrix: Any) -> int:
    if scipy.sparse.issparse(matrix):
        return sum(of.nbytes for of in (matrix.data, matrix.indices, matrix.indptr))
    return matrix.nbytes


def _frozen(array: np.ndarray) -> np.ndarray:
    # The cache hands the same array to every layer.
    array.setflags(write=False)
    return array
