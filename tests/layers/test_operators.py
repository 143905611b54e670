"""The operators that are made inside the graph, against those of NumPy."""

import numpy as np
import pytest
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers._spectral import spectral_operators
from tests._cases import cases

each_boundary = pytest.mark.parametrize(
    "boundary", cases(kernels.BOUNDARIES, ["symmetric"])
)


def assert_graph_operators(size, scales, boundary, dtype, tolerance, step=1.0):
    reach = kernels.support_radius(max(scales), step)
    graph = spectral_operators(
        size,
        ops.convert_to_tensor(scales, dtype),
        4,
        boundary == "symmetric",
        reach,
        dtype,
        (step, reach),
    )
    assert len(graph) == 5
    for order, of_scales in enumerate(graph):
        for scale, actual in zip(scales, ops.unstack(of_scales), strict=True):
            expected = kernels.axis_operator(size, scale, order, boundary, step)
            atol = tolerance * max(np.abs(expected).max(), 0.01)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


@pytest.mark.usefixtures("float64")
@each_boundary
@pytest.mark.parametrize("size", [1, 2, 9, 32])
def test_operators_of_the_graph_are_those_of_numpy(size, boundary):
    for scales in ((0.125, 0.25), (1.25, 2.5), (7.5, 15.0)):
        assert_graph_operators(size, scales, boundary, "float64", 1e-8)
    for step, sigma in ((0.5, 0.5), (0.5**1.5, 1.3), (0.7, 4.0)):
        assert_graph_operators(size, [sigma], boundary, "float64", 1e-8, step)


SCALES = [(64, 0.5), (65, 6.0), (192, 20.0)]


@each_boundary
@pytest.mark.parametrize(("size", "sigma"), cases(SCALES, SCALES[:1]))
def test_operators_of_the_graph_are_precise_in_float32(size, sigma, boundary):
    # Nothing is differenced after rounding: no order loses digits to cancellation.
    assert_graph_operators(size, (sigma / 2, sigma), boundary, "float32", 1e-5)
