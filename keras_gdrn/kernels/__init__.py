"""Discrete Gaussian derivative kernels and their axis operators, in float64.

Everything here is NumPy and SciPy; no Keras. The notation is the paper's: `sigma`
is a standard deviation in pixels, `s = sigma**2`, and the 1-D kernel of order `a` is
`sigma**a δ^a T(·; sigma)` with `T(n; sigma) = exp(-s) I_n(s)` the discrete analogue
of the Gaussian (Eq. discrete-gaussian-kernel) and `δ^a` the composed central
difference (Eqs. central-difference-operators). Kernels are applied as correlations, so
that a first-order response carries the sign of the derivative.
"""

from keras_gdrn.kernels._axis import (
    BOUNDARIES,
    Samples,
    Stencil,
    axis_operator,
    sampled_operator,
    stencils,
)
from keras_gdrn.kernels._discrete import (
    central_difference,
    discrete_gaussian,
    fourier_response,
    gaussian_derivative,
    half_pixel_derivative,
    spline_interpolation,
    support_radius,
    truncation_radius,
)
from keras_gdrn.kernels._factors import (
    LONG_AXIS,
    AxisFactors,
    Differences,
    axis_factors,
    differences,
)
from keras_gdrn.kernels._grid import (
    derivative_stencils,
    interpolation,
    sampling,
    smoothing,
    stencil_radius,
)
from keras_gdrn.kernels._jet import multi_indices, multinomial

__all__ = [
    "BOUNDARIES",
    "LONG_AXIS",
    "AxisFactors",
    "Differences",
    "Samples",
    "Stencil",
    "axis_factors",
    "axis_operator",
    "central_difference",
    "derivative_stencils",
    "differences",
    "discrete_gaussian",
    "fourier_response",
    "gaussian_derivative",
    "half_pixel_derivative",
    "interpolation",
    "multi_indices",
    "multinomial",
    "sampled_operator",
    "sampling",
    "smoothing",
    "spline_interpolation",
    "stencil_radius",
    "stencils",
    "support_radius",
    "truncation_radius",
]
