"""The evaluation behind `GaussDerConv`: its own gradient and its graph operators."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers import _jets
from tests._gradients import gradients

each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)


class Mixed(keras.layers.Layer):
    """One of the two forms of the mixed jet, with its kernel as a weight."""

    def __init__(self, form, kernel, operators, indices):
        super().__init__(dtype="float64")
        self.form, self.operators, self.indices = form, operators, indices
        self.kernel = self.add_weight(shape=kernel.shape, initializer="zeros")
        self.kernel.assign(kernel)

    def call(self, inputs):
        # As the layer does: custom gradients take tensors, not variables.
        kernel = 1.0 * self.kernel
        return self.form(inputs, kernel, self.operators, self.indices)


@pytest.mark.usefixtures("float64")
@each_boundary
@pytest.mark.parametrize("mixing", [(3, 2), (3,)])
@pytest.mark.parametrize("sizes", [(6,), (5, 7), (3, 4, 5)])
def test_own_gradient_is_that_of_automatic_differentiation(sizes, mixing, boundary):
    rng = np.random.default_rng(0)
    indices = kernels.multi_indices(len(sizes), 2, zero_order=True)
    operators = [
        np.stack([kernels.axis_operator(n, 1.2, a, boundary) for a in range(3)])
        for n in sizes
    ]
    x = rng.normal(size=(2, *sizes, 3))
    kernel = rng.normal(size=(len(indices), *mixing))
    upstream = rng.normal(size=(2, *sizes, mixing[-1]))
    plain, own = (
        Mixed(form, kernel, operators, indices)
        for form in (_jets.mixed_jet, _jets.mixed_jet_of_constants)
    )
    np.testing.assert_allclose(own(x), plain(x), rtol=1e-12)
    automatic = gradients(plain, x, upstream)
    for actual, expected in zip(gradients(own, x, upstream), automatic, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def assert_graph_operators(size, sigma, boundary, dtype, tolerance):
    reach = kernels.support_radius(sigma)
    graph = _jets.spectral_operators(size, sigma, 4, boundary, reach, dtype)
    for order, actual in enumerate(ops.convert_to_numpy(graph)):
        expected = kernels.axis_operator(size, sigma, order, boundary)
        scale = max(np.abs(expected).max(), 0.01)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.usefixtures("float64")
@each_boundary
@pytest.mark.parametrize("sigma", [0.25, 0.5, 1.0, 2.5, 6.0, 15.0])
@pytest.mark.parametrize("size", [1, 2, 9, 32])
def test_operators_of_the_graph_are_those_of_numpy(size, sigma, boundary):
    assert_graph_operators(size, sigma, boundary, "float64", 1e-8)


@each_boundary
@pytest.mark.parametrize(("size", "sigma"), [(64, 0.5), (65, 6.0), (192, 20.0)])
def test_operators_of_the_graph_are_precise_in_float32(size, sigma, boundary):
    # Nothing is differenced after rounding: no order loses digits to cancellation.
    assert_graph_operators(size, sigma, boundary, "float32", 1e-5)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_apply_along_multiplies_one_axis(axis):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 4, 5)).astype("float32")
    operator = rng.normal(size=(6, x.shape[axis]))
    expected = np.moveaxis(np.tensordot(operator, x, (1, axis)), 0, axis)
    actual = ops.convert_to_numpy(_jets.apply_along(operator, ops.array(x), axis))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
