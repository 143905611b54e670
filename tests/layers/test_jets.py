"""The evaluation behind `GaussDerConv`: products in the basis, and its own gradient."""

import gc
import weakref

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv, _jets
from tests._cases import cases
from tests._gradients import DTYPE, EXACT, gradients

each_mixing = pytest.mark.parametrize("mixing", [(3, 2), (3,), (3, 1)])

# Sizes of the input and of the output along each axis.
SIZES = [[(12, 12)], [(5, 5), (12, 8)], [(12, 4), (5, 5)], [(3, 3), (4, 2), (12, 12)]]
each_sizes = pytest.mark.parametrize("sizes", cases(SIZES, SIZES[1:2]), ids=str)
# At fine scales no axis is reduced, at coarse ones those that are worth it.
SIGMAS = (0.6, 0.9, 4.0, 5.0)


def factors_of(sizes, sigmas, boundary="zero", order=2, epsilon=0.05, influence=2.5):
    """For each scale, which has one row more of the first axis than the one before."""
    return tuple(
        tuple(
            kernels.axis_factors(
                size + 2 * s * (axis == 0),
                sigma,
                order,
                boundary,
                epsilon,
                leaving=kernels.Samples(outputs, influence=influence),
            )
            for axis, (size, outputs) in enumerate(sizes)
        )
        for s, sigma in enumerate(sigmas)
    )


def positions(factors):
    return sum(int(np.prod([axis.size for axis in axes])) for axes in factors)


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


@each_mixing
@each_sizes
def test_own_gradient_is_that_of_automatic_differentiation(sizes, mixing):
    rng = np.random.default_rng(0)
    indices = kernels.multi_indices(len(sizes), 2, zero_order=True)
    boundary = "zero" if len(mixing) == len(sizes) else "symmetric"
    factors = factors_of(sizes, SIGMAS, boundary)
    assert any(axis.analysis is not None for axis in factors[2])
    x = rng.normal(size=(positions(factors), 2, 3))
    kernel = rng.normal(size=(len(indices), *mixing))
    own, plain = (
        Filtered(kernel, factors, indices, constant) for constant in (True, False)
    )
    upstream = rng.normal(size=own(x).shape)
    automatic = gradients(plain, x, upstream)
    tolerance = 1e-11 if EXACT else 1e-4
    for actual, expected in zip(gradients(own, x, upstream), automatic, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@each_mixing
@each_sizes
def test_each_scale_has_its_own_operators(sizes, mixing):
    """Against products with whole matrices in float64, scale by scale."""
    rng = np.random.default_rng(0)
    indices = kernels.multi_indices(len(sizes), 3)
    factors = factors_of(sizes, SIGMAS, order=3)
    kernel = rng.normal(size=(len(indices), *mixing))
    x = [rng.normal(size=(*(a.size for a in axes), 2, 3)) for axes in factors]
    flat = np.concatenate([part.reshape(-1, 2, 3) for part in x])
    filtered = _jets.filtered(
        ops.array(flat, "float32"), ops.array(kernel, "float32"), factors, indices
    )
    expected = [
        whole_product(part, kernel, axes, indices).reshape(-1, 2, mixing[-1])
        for part, axes in zip(x, factors, strict=True)
    ]
    expected = np.concatenate(expected)
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(filtered, expected, rtol=0, atol=atol)


def whole_product(x, kernel, axes, indices):
    total = 0
    for alpha, weight in zip(indices, kernel, strict=True):
        response = x
        for number, (axis, a) in enumerate(zip(axes, alpha, strict=True)):
            moved = np.moveaxis(response, number, 0)
            moved = np.tensordot(as_matrix(axis, a), moved, 1)
            response = np.moveaxis(moved, 0, number)
        total = total + (response * weight if weight.ndim == 1 else response @ weight)
    return total


def as_matrix(axis, order):
    matrix = axis.jets[order]
    if axis.analysis is not None:
        matrix = matrix @ axis.analysis
    return matrix if axis.synthesis is None else axis.synthesis @ matrix


def test_gradient_takes_the_number_of_filters_from_the_kernel():
    """Behind a maximum, TensorFlow does not know the shape of the gradient."""
    image = keras.Input((8, 8, 2))
    maps = GaussDerConv(1, 1.0)(image)
    model = keras.Model(image, keras.layers.GlobalMaxPooling2D()(maps))
    model.compile("sgd", "mse")
    history = model.fit(np.ones((4, 8, 8, 2)), np.ones((4, 1)), verbose=0)
    assert np.isfinite(history.history["loss"][0])


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="compiled on JAX alone")
def test_only_the_bounded_cache_keeps_factors():
    """A search builds hundreds of networks: what they were evaluated by is let go."""
    axis = kernels.axis_factors(7, 1.234, 2, "zero", 0.05)
    found = weakref.ref(axis)
    indices = kernels.multi_indices(1, 2)
    x, kernel = ops.ones((7, 1, 2)), ops.ones((len(indices), 2, 3))
    assert _jets.filtered(x, kernel, ((axis,),), indices).shape == (7, 1, 3)
    del axis
    kernels.axis_factors.cache.clear()
    gc.collect()
    assert found() is not None
    _jets._compiled.cache_clear()
    gc.collect()
    assert found() is None
