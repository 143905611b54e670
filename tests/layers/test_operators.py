"""The operators that are made inside the graph, against those of NumPy."""

import numpy as np
import pytest
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers._spectral import spectral_operators
from tests._cases import cases

SCALES = [(64, 0.5), (65, 6.0), (192, 20.0)]


@pytest.mark.parametrize("boundary", cases(kernels.BOUNDARIES, ["symmetric"]))
@pytest.mark.parametrize(("size", "sigma"), cases(SCALES, SCALES[:1]))
def test_operators_of_the_graph_are_precise_in_float32(size, sigma, boundary):
    """Nothing is differenced after rounding: no order loses digits to cancellation."""
    graph = spectral_operators(
        *(size, ops.convert_to_tensor((sigma / 2, sigma), "float32"), 4),
        mirrored=boundary == "symmetric",
        reach=kernels.support_radius(sigma),
        dtype="float32",
    )
    for order, of_scales in enumerate(graph):
        for scale, actual in zip((sigma / 2, sigma), of_scales, strict=True):
            expected = kernels.axis_operator(size, scale, order, boundary)
            atol = 1e-5 * max(np.abs(expected).max(), 0.01)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)
