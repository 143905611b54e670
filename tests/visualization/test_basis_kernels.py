"""Basis kernels: derivatives of the discrete Gaussian, checked by their moments."""

import numpy as np
import pytest

from keras_gdrn.visualization import basis_kernels


def test_are_derivatives_of_a_gaussian():
    basis = basis_kernels(2.0, order=2, radius=30)
    y, x = np.mgrid[-30:31, -30:31]
    np.testing.assert_allclose(basis[0, 0].sum(), 1)
    np.testing.assert_allclose((basis[0, 0] * x**2).sum(), 2.0**2)
    # Convolution with g_x differentiates along x: -Σ g_x(x) x = σ.
    np.testing.assert_allclose(-(basis[0, 1] * x).sum(), 2.0)
    np.testing.assert_allclose(-(basis[1, 0] * y).sum(), 2.0)
    np.testing.assert_allclose((basis[1, 1] * x * y).sum(), 2.0**2)
    np.testing.assert_allclose((basis[0, 2] * x**2 / 2).sum(), 2.0**2)


def test_are_those_of_the_papers_figure_in_its_order():
    assert basis_kernels(1.0, order=3)[0, 0].shape == (11, 11)
    assert basis_kernels(4.0, order=3)[3, 0].shape == (33, 33)
    assert list(basis_kernels(1.0)) == [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0)]


@pytest.mark.parametrize(
    ("sigma", "order", "message"),
    [(-1.0, 1, "`sigma` .* sigma=-1.0"), (1.0, -1, "`order` .* order=-1")],
)
def test_refuse_what_is_no_scale_or_order(sigma, order, message):
    with pytest.raises(ValueError, match=message):
        basis_kernels(sigma, order)
