"""A block without its ReLU is an Euler step of velocity-adapted affine diffusion.

    ∂_s L = ½ ∇ᵀ (Σ ∇L) - vᵀ ∇L

Source: Sec. 3.2, Eqs. eq-expl-1stage-gaussderresnet-block and eq-gen-diff-eq. With
m(α) counted as in the layer, coefficients of the block and of the equation agree for
`Δs Σ_ij = 2 C_ij σ²` and `Δs v_i = -C_i σ`. The paper has neither the factor nor the
sign.
"""

import numpy as np
import pytest

from tests.theory.images import coordinates
from tests.theory.networks import array, grey_jet

SIGMA, SIZE, CROP = 1.5, 41, 12
FIRST = {(1, 0): 0.3, (0, 1): -0.2}
SECOND = {(2, 0): 0.4, (1, 1): 0.1, (0, 2): 0.25}

# Of a quadratic polynomial neither smoothing nor central differences change any of the
# derivatives in the equation.
GRADIENT, HESSIAN = np.array([0.7, -0.4]), np.array([[0.02, 0.01], [0.01, -0.03]])


def polynomial():
    """`L`, and `∇L` at each position."""
    x = np.stack(np.meshgrid(*[coordinates(SIZE)] * 2, indexing="ij"), axis=-1)
    values = x @ GRADIENT + 0.5 * np.einsum("...i,ij,...j->...", x, HESSIAN, x)
    return values, GRADIENT + x @ HESSIAN


def block():
    """`(1 + Σ_α m(α) C_α σ^|α| ∂^α g) * L`, in the middle of the image."""
    coefficients = {**FIRST, **SECOND, (0, 0): 0.0}
    layer = grey_jet(coefficients.get, SIGMA, use_bias=False)
    values, _ = polynomial()
    image = values[None, ..., None].astype("float32")
    return (image + array(layer(image)))[0, CROP:-CROP, CROP:-CROP, 0]


def euler_step(factor, sign):
    """With `Δs Σ_ij = factor C_ij σ²` and `Δs v_i = sign C_i σ`."""
    values, gradient = polynomial()
    xx, xy, yy = (factor * SIGMA**2 * c for c in SECOND.values())
    velocity = sign * SIGMA * np.array(list(FIRST.values()))
    diffusion = 0.5 * np.sum(np.array([[xx, xy], [xy, yy]]) * HESSIAN)
    step = values + diffusion - gradient @ velocity
    return step[CROP:-CROP, CROP:-CROP]


def test_a_block_is_an_euler_step():
    np.testing.assert_allclose(block(), euler_step(factor=2, sign=-1), atol=2e-5)


@pytest.mark.parametrize(("factor", "sign"), [(1, 1), (1, -1), (2, 1)])
def test_other_factors_and_signs_are_not(factor, sign):
    assert np.abs(block() - euler_step(factor, sign)).max() > 1e-3
