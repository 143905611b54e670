"""Discrete Gaussian derivative kernels and their axis operators, in float64.

Everything here is NumPy and SciPy; no Keras. The notation is the paper's: `sigma`
is a standard deviation in pixels, `s = sigma**2`, and the 1-D kernel of order `a` is
`sigma**a δ^a T(·; sigma)` with `T(n; sigma) = exp(-s) I_n(s)` the discrete analogue
of the Gaussian (Eq. discrete-gaussian-kernel) and `δ^a` the composed central
difference (Eqs. central-difference-operators). Kernels are applied as correlations, so
that a first-order response carries the sign of the derivative.
"""

import dataclasses
import itertools
import math
import threading
from typing import Any

import cachetools
import numpy as np
from scipy.special import ive

from keras_gdrn._checks import check_choice, check_epsilon, check_sigma

BOUNDARIES = ("zero", "symmetric")

# Gaussian tails below this are lost in float64 rounding and are not computed.
_ROUNDING = 1e-17

# The tails of a Gaussian end in numbers that float32 cannot hold in full. Where these
# are not taken for zero, as in onnxruntime, products with them take some times as long.
_VANISHED = 1e-20

# Above this share of the axis length, the extra product that enters or leaves the
# low-rank basis costs more than the smaller channel mix saves.
_WORTHWHILE_RANK = 0.85

# Of outputs without influence: dividing by smaller ones would amplify rounding.
_LEAST_WEIGHT = 0.01

# Enough for the whole networks of the paper at several image sizes.
_CACHED_BYTES = 512 * 2**20


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


def central_difference(order: int) -> np.ndarray:
    """Stencil of the composed central difference `δ^order`, as a correlation.

    `δ_x = (-1/2, 0, 1/2)` and `δ_xx = (1, -2, 1)`, composed: `δ_xx^j` for
    `order = 2j`, `δ_x δ_xx^j` for `order = 2j + 1`.

    Source: Eqs. central-difference-operators and disc-gauss+central-diff.

    Returns:
        A float64 array of odd length `2 * ceil(order / 2) + 1`, centered.
    """
    if order < 0:
        raise ValueError(f"`order` must be >= 0. Received: order={order}")
    stencil = np.ones(1)
    if order % 2:
        stencil = np.array([-0.5, 0.0, 0.5])
    for _ in range(order // 2):
        stencil = np.convolve(stencil, [1.0, -2.0, 1.0])
    return stencil


def discrete_gaussian(sigma: float, radius: int) -> np.ndarray:
    """Discrete analogue of the Gaussian, `T(n; sigma)` for `|n| <= radius`.

    Source: Lindeberg 1990; Eq. discrete-gaussian-kernel.

    Returns:
        A float64 array of length `2 * radius + 1`.
    """
    check_sigma(sigma)
    return ive(np.abs(np.arange(-radius, radius + 1)), float(sigma) ** 2)


def gaussian_derivative(sigma: float, order: int, radius: int) -> np.ndarray:
    """Scale-normalized 1-D kernel `sigma**order δ^order T(·; sigma)`.

    Returns:
        A float64 array of length `2 * radius + 1`, to be used as a correlation: a ramp
        that rises along the axis is answered by `+sigma` at order 1.
    """
    stencil = central_difference(order)
    smooth = discrete_gaussian(sigma, radius + len(stencil) // 2)
    return sigma**order * np.convolve(smooth, stencil[::-1], mode="valid")[::-1]


def fourier_response(theta: np.ndarray, sigma: float, order: int) -> np.ndarray:
    """Closed form of the kernel in the Fourier domain.

    `sigma**a (i sin θ)**(a mod 2) (2 cos θ - 2)**⌊a/2⌋ exp(-s (1 - cos θ))`: the factor
    by which correlation with `gaussian_derivative` multiplies `exp(i θ n)`.

    Args:
        theta: Angular frequencies in radians per pixel, any shape.
    """
    check_sigma(sigma)
    theta = np.asarray(theta, dtype=float)
    difference = (1j * np.sin(theta)) ** (order % 2)
    difference = difference * (2 * np.cos(theta) - 2) ** (order // 2)
    return sigma**order * difference * np.exp(-(sigma**2) * (1 - np.cos(theta)))


def truncation_radius(sigma: float, epsilon: float, dimensions: int = 1) -> int:
    """Smallest radius whose `(2 radius + 1)**D` window holds `1 - epsilon` of the mass.

    Source: the relative truncation error bound ε of the paper's Table 2,
    `1 - (Σ_{|n| <= radius} T(n; sigma))**D <= epsilon`.
    """
    check_epsilon(epsilon)
    if dimensions < 1:
        raise ValueError(
            f"`dimensions` must be >= 1. Received: dimensions={dimensions}"
        )
    half = discrete_gaussian(sigma, support_radius(sigma))
    half = half[len(half) // 2 :]
    # Sum the tails, smallest first: 1 - (sum) would lose every epsilon below 1e-16.
    tails = 2 * np.append(np.cumsum(half[:0:-1])[::-1], 0.0)
    return int(np.argmax(-np.expm1(dimensions * np.log1p(-tails)) <= epsilon))


def support_radius(sigma: float) -> int:
    """Radius outside which `T(·; sigma)` vanishes to float64 rounding."""
    check_sigma(sigma)
    radius = math.ceil(10 * sigma) + 20
    tail = ive(np.arange(radius + 1), float(sigma) ** 2)
    return int(np.count_nonzero(tail > _ROUNDING))


def axis_operator(size: int, sigma: float, order: int, boundary: str) -> np.ndarray:
    """Matrix `K_order` that applies the 1-D kernel along an axis of `size` pixels.

    Args:
        boundary: `"zero"` (pixels outside the image are zero) or `"symmetric"`
            (half-sample mirror: `x[-1 - n] = x[n]`, repeated as often as needed).

    Returns:
        A float64 array `(size, size)`: `K @ x` is the response to the signal `x`.
    """
    check_choice("boundary", boundary, BOUNDARIES)
    if size < 1:
        raise ValueError(f"`size` must be >= 1. Received: size={size}")
    pixels = np.arange(size)
    if boundary == "zero":
        kernel = gaussian_derivative(sigma, order, size - 1)
        return kernel[pixels[None, :] - pixels[:, None] + size - 1]
    radius = support_radius(sigma) + order
    kernel = gaussian_derivative(sigma, order, radius)
    position = pixels[:, None] + np.arange(-radius, radius + 1)
    folded = position % (2 * size)
    column = np.minimum(folded, 2 * size - 1 - folded)
    operator = np.zeros((size, size))
    np.add.at(operator, (pixels[:, None], column), kernel)
    return operator


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
    outputs: int | None = None,
    influence: float = math.inf,
) -> AxisFactors:
    """Shared low-rank factors of `K_0, …, K_order` along one axis.

    The columns of `synthesis` span the leading left singular vectors of
    `[K_0 | … | K_order]`, the rows of `analysis` the leading right singular vectors of
    the same matrices stacked vertically; singular values below `epsilon` times the
    largest are dropped. A signal is thus represented by about `1.55 size / sigma`
    coefficients (at `epsilon = 1e-3`). Where there are not many fewer of them than
    pixels, on the side of the input or of the output, that side is left as it is.

    Guarantee: the spectral norm of `G (K_a - synthesis jets[a] analysis)` is at most
    `epsilon` times the sum of the norms of `G [K_0 | K_1 | …]` and of `G K_0`, `G K_1`,
    … stacked vertically, where `G` weights each output by its influence on the answer.

    Args:
        outputs: How many outputs are needed, around the center; by default all.
        influence: An output at distance `p` from the center, in pixels, has the weight
            `exp(-p² / (2 influence²))`, at least 0.01; by default all weigh the same.
    """
    outputs = size if outputs is None else outputs
    margin = (size - outputs) // 2
    operators = np.stack(
        [
            axis_operator(size, sigma, a, boundary)[margin : margin + outputs]
            for a in range(order + 1)
        ]
    )
    distance = np.arange(outputs) - (outputs - 1) / 2
    weights = np.exp(-0.5 * (distance / influence) ** 2)[:, None]
    weights = np.maximum(weights, _LEAST_WEIGHT)
    weighted = weights * operators
    left = _leading_basis(np.concatenate(weighted, axis=1), epsilon)
    right = _leading_basis(np.concatenate(weighted, axis=0).T, epsilon)
    jets, analysis, synthesis = operators, None, None
    if left.shape[1] < _WORTHWHILE_RANK * outputs:
        jets = left.T @ (weights * jets)
        synthesis = _frozen(left / weights)
    if right.shape[1] < _WORTHWHILE_RANK * size:
        jets = jets @ right
        analysis = _frozen(right.T)
    return AxisFactors(analysis, _frozen(jets), synthesis)


def multi_indices(
    dimensions: int, order: int, zero_order: bool = False
) -> tuple[tuple[int, ...], ...]:
    """Multi-indices α of the jet, `0 or 1 <= |α| <= order`, by order.

    In two dimensions up to order 2: (1, 0), (0, 1), (2, 0), (1, 1), (0, 2).
    """
    lowest = 0 if zero_order else 1
    every = itertools.product(range(order, -1, -1), repeat=dimensions)
    kept = (alpha for alpha in every if lowest <= sum(alpha) <= order)
    return tuple(sorted(kept, key=sum))


def multinomial(alpha: tuple[int, ...]) -> int:
    """`m(α) = |α|! / (α_1! … α_D!)`, the jet's normalization factor."""
    product = math.prod(math.factorial(a) for a in alpha)
    return math.factorial(sum(alpha)) // product


def _leading_basis(matrix: np.ndarray, epsilon: float) -> np.ndarray:
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, values > epsilon * values[0]]


def _frozen(array: np.ndarray) -> np.ndarray:
    # The cache hands the same array to every layer.
    array = np.where(np.abs(array) < _VANISHED, 0.0, array)
    array.setflags(write=False)
    return array
