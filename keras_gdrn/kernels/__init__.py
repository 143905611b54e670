"""Discrete Gaussian derivative kernels, in float64.

Everything here is NumPy and SciPy; no Keras. The notation is the paper's: `sigma`
is a standard deviation in pixels, `s = sigma**2`, and the 1-D kernel of order `a` is
`sigma**a δ^a T(·; sigma)` with `T(n; sigma) = exp(-s) I_n(s)` the discrete analogue
of the Gaussian (Eq. discrete-gaussian-kernel) and `δ^a` the composed central
difference (Eqs. central-difference-operators). Kernels are applied as correlations, so
that a first-order response carries the sign of the derivative.
"""

from keras_gdrn.kernels._axis import BOUNDARIES, low_rank_factors
from keras_gdrn.kernels._discrete import (
    central_difference,
    discrete_gaussian,
    gaussian_derivative,
    truncation_radius,
)
from keras_gdrn.kernels._jet import multi_indices, multinomial

__all__ = [
    "BOUNDARIES",
    "central_difference",
    "discrete_gaussian",
    "gaussian_derivative",
    "low_rank_factors",
    "multi_indices",
    "multinomial",
    "truncation_radius",
]
