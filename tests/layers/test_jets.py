"""The evaluation behind `GaussDerConv`: its own gradient and its graph operators."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers import _jets
from tests._gradients import DTYPE, EXACT, gradients

each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)


class Filtered(keras.layers.Layer):
    """`_jets.filtered` with its kernel as a weight."""

    def __init__(self, kernel, factors, indices, constant):
        super().__init__(dtype=DTYPE)
        self.factors, self.indices, self.constant = factors, indices, constant
        self.kernel = self.add_weight(shape=kernel.shape, initializer="zeros")
        self.kernel.assign(kernel)

    def call(self, inputs):
        # As the layer does: custom gradients take tensors, not variables.
        kernel = 1.0 * self.kernel
        return _jets.filtered(
            inputs, kernel, self.factors, self.indices, constant=self.constant
        )


@each_boundary
@pytest.mark.parametrize("mixing", [(3, 2), (3,)])
@pytest.mark.parametrize("sizes", [(12,), (5, 12), (12, 5), (3, 4, 12)])
def test_own_gradient_is_that_of_automatic_differentiation(sizes, mixing, boundary):
    rng = np.random.default_rng(0)
    indices = kernels.multi_indices(len(sizes), 2, zero_order=True)
    # At fine scales no axis is reduced, at coarse ones those that are worth it.
    factors = [
        [kernels.axis_factors(n, sigma, 2, boundary, 0.05) for n in sizes]
        for sigma in (0.6, 0.9, 4.0, 5.0)
    ]
    assert any(axis.analysis is not None for axis in factors[2])
    x = rng.normal(size=(4, *sizes, 3))
    kernel = rng.normal(size=(len(indices), *mixing))
    upstream = rng.normal(size=(4, *sizes, mixing[-1]))
    own, plain = (
        Filtered(kernel, factors, indices, constant) for constant in (True, False)
    )
    automatic = gradients(plain, x, upstream)
    tolerance = 1e-11 if EXACT else 1e-4
    for actual, expected in zip(gradients(own, x, upstream), automatic, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("sigmas", "groups"),
    [
        ((0.6, 3.0), [1, 1]),
        ((0.6, 0.9, 2.5, 6.0, 8.0, 11.0), [2, 1, 3]),
        ((8.0, 0.6, 11.0), [1, 1, 1]),
    ],
)
def test_each_part_of_the_batch_is_at_its_own_scale(sigmas, groups):
    indices = kernels.multi_indices(2, 1)
    factors = [
        [kernels.axis_factors(n, sigma, 1, "zero", 1e-3) for n in (24, 27)]
        for sigma in sigmas
    ]
    assert [len(group) for group in _jets._grouped(factors)] == groups
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * len(sigmas), 24, 27, 3))
    kernel = ops.array(rng.normal(size=(2, 3, 5)))
    together = ops.split(
        _jets.filtered(ops.array(x), kernel, factors, indices), len(sigmas)
    )
    for actual, part, axes in zip(
        together, np.split(x, len(sigmas)), factors, strict=True
    ):
        alone = _jets.filtered(ops.array(part), kernel, [axes], indices)
        np.testing.assert_allclose(actual, alone, rtol=1e-5, atol=1e-5)


def test_no_denormal_numbers():
    axis = kernels.axis_factors(40, 0.5, 2, "zero", 1e-3)
    tiny = np.finfo("float32").tiny
    assert np.any((axis.jets != 0) & (np.abs(axis.jets) < tiny))
    (tensors,) = _jets._tensors([[axis]], "float32")
    for jet, expected in zip(tensors.jets, axis.jets, strict=True):
        values = np.abs(ops.convert_to_numpy(jet))
        assert values[values > 0].min() > 1e10 * tiny
        np.testing.assert_allclose(jet[0, 0], expected, rtol=1e-6, atol=1e-19)


def assert_graph_operators(size, sigma, boundary, dtype, tolerance):
    scales, reach = (sigma / 2, sigma), kernels.support_radius(sigma)
    graph = _jets.spectral_operators(
        size, ops.convert_to_tensor(scales, dtype), 4, boundary, reach, dtype
    )
    assert len(graph) == 5
    for order, of_scales in enumerate(graph):
        for scale, actual in zip(scales, ops.unstack(of_scales), strict=True):
            expected = kernels.axis_operator(size, scale, order, boundary)
            atol = tolerance * max(np.abs(expected).max(), 0.01)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


@pytest.mark.usefixtures("float64")
@each_boundary
@pytest.mark.parametrize("sigma", [0.25, 1.0, 2.5, 15.0])
@pytest.mark.parametrize("size", [1, 2, 9, 32])
def test_operators_of_the_graph_are_those_of_numpy(size, sigma, boundary):
    assert_graph_operators(size, sigma, boundary, "float64", 1e-8)


@each_boundary
@pytest.mark.parametrize(("size", "sigma"), [(64, 0.5), (65, 6.0), (192, 20.0)])
def test_operators_of_the_graph_are_precise_in_float32(size, sigma, boundary):
    # Nothing is differenced after rounding: no order loses digits to cancellation.
    assert_graph_operators(size, sigma, boundary, "float32", 1e-5)
