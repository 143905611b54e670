"""The kernels as matrices along one axis, whole and in low-rank form."""

import dataclasses
import math
import threading
from typing import Any

import cachetools
import numpy as np

from keras_gdrn._checks import check_choice
from keras_gdrn.kernels._discrete import gaussian_derivative, support_radius

BOUNDARIES = ("zero", "symmetric")

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
    step: float = 1.0,
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
        size: Number of pixels along the axis.
        sigma: Standard deviation σ in pixels.
        order: Highest order of differentiation.
        boundary: As for `axis_operator`.
        epsilon: Relative tolerance, in (0, 1).
        outputs: How many outputs are needed, around the center; by default all.
        influence: An output at distance `p` from the center, in pixels, has the weight
            `exp(-p² / (2 influence²))`, at least 0.01; by default all weigh the same.
        step: As for `gaussian_derivative`.

    Returns:
        `AxisFactors` of read-only arrays. The same arguments give the same object.
    """
    outputs = size if outputs is None else outputs
    margin = (size - outputs) // 2
    operators = np.stack(
        [
            axis_operator(size, sigma, a, boundary, step)[margin : margin + outputs]
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


def _leading_basis(matrix: np.ndarray, epsilon: float) -> np.ndarray:
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, values > epsilon * values[0]]


def _frozen(array: np.ndarray) -> np.ndarray:
    # The cache hands the same array to every layer.
    array = np.where(np.abs(array) < _VANISHED, 0.0, array)
    array.setflags(write=False)
    return array
