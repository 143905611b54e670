"""The evaluation behind `GaussDerConv`: products in the basis, and its own gradient."""

import gc
import weakref

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv, _jets
from tests import _reference
from tests._cases import cases
from tests._gradients import DTYPE, EXACT, gradients

# Sizes of the input and of the output along each axis.
SIZES = [[(12, 12)], [(5, 5), (12, 8)], [(12, 4), (5, 5)], [(3, 3), (4, 2), (12, 12)]]
# At fine scales no axis is reduced, at coarse ones those that are worth it.
SIGMAS = (0.6, 0.9, 4.0, 5.0)


def factors_of(sizes, boundary):
    """For each scale, which has one row more of the first axis than the one before."""
    return tuple(
        tuple(
            kernels.axis_factors(
                *(size + 2 * s * (axis == 0), sigma, 3, boundary, 0.05),
                leaving=kernels.Samples(outputs, influence=2.5),
            )
            for axis, (size, outputs) in enumerate(sizes)
        )
        for s, sigma in enumerate(SIGMAS)
    )


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


@pytest.mark.parametrize("mixing", [(3, 2), (3,), (3, 1)])
@pytest.mark.parametrize("sizes", cases(SIZES, SIZES[1:2]), ids=str)
def test_is_products_with_whole_matrices_with_their_gradient(sizes, mixing):
    """Those of each scale; the gradient is that of automatic differentiation."""
    rng = np.random.default_rng(0)
    indices = kernels.multi_indices(len(sizes), 3, zero_order=True)
    boundary = "zero" if len(mixing) == len(sizes) else "symmetric"
    factors = factors_of(sizes, boundary)
    assert any(axis.analysis is not None for axis in factors[2])
    maps = [rng.normal(size=(*(a.size for a in axes), 2, 3)) for axes in factors]
    x = np.concatenate([part.reshape(-1, 2, 3) for part in maps])
    kernel = rng.normal(size=(len(indices), *mixing))
    own, plain = (
        Filtered(kernel, factors, indices, constant) for constant in (True, False)
    )
    expected = [
        whole_product(part, kernel, axes, indices).reshape(-1, 2, mixing[-1])
        for part, axes in zip(maps, factors, strict=True)
    ]
    expected = np.concatenate(expected)
    tolerance = 1e-11 if EXACT else 1e-4
    atol = (1e-11 if EXACT else 1e-5) * np.abs(expected).max()
    actual = ops.convert_to_numpy(own(ops.convert_to_tensor(x, DTYPE)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)
    upstream = rng.normal(size=expected.shape)
    automatic = gradients(plain, x, upstream)
    for actual, expected in zip(gradients(own, x, upstream), automatic, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def whole_product(x, kernel, axes, indices):
    total = 0
    for alpha, weight in zip(indices, kernel, strict=True):
        response = x
        for number, (axis, a) in enumerate(zip(axes, alpha, strict=True)):
            moved = np.tensordot(_reference.product(axis, a), response, (1, number))
            response = np.moveaxis(moved, 0, number)
        total = total + (response * weight if weight.ndim == 1 else response @ weight)
    return total


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
