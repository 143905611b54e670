"""Products with few entries in each row give what the whole matrices give."""

import keras
import numpy as np
import pytest

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.layers._grids import Grid, summed_along
from keras_gdrn.layers._tiles import _tiles
from tests._cases import cases

each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)
SIZE = 257


def numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def operators(boundary: str) -> dict[str, list]:
    narrow = kernels.axis_factors(SIZE, 0.8, 2, boundary, 1e-3)
    wide = kernels.axis_factors(SIZE, 6.0, 2, boundary, 1e-3)
    part = kernels.axis_factors(
        *(SIZE + 40, 0.8, 2, boundary, 1e-3), leaving=kernels.Samples(SIZE)
    )
    return {
        "stencils": narrow.jets,
        "transposed": narrow.adjoint.jets,
        "of a part": part.jets,
        "transposed of a part": part.adjoint.jets,
        "sparse": [wide.analysis, wide.analysis],
        "transposed sparse": [wide.adjoint.analysis, wide.adjoint.analysis],
        "back": [wide.synthesis, wide.synthesis],
    }


@pytest.mark.parametrize("boundary", cases(kernels.BOUNDARIES, ["symmetric"]))
@pytest.mark.parametrize("kind", operators("zero"))
@pytest.mark.parametrize("axis", [0, 1])
def test_products_are_those_of_the_whole_matrices(axis, kind, boundary):
    matrices = operators(boundary)[kind]
    whole = [matrix.toarray() for matrix in matrices]
    sizes = [3, 3]
    sizes[axis] = whole[0].shape[1]
    channels = (64, 4)[axis]  # stencils take them as they are, or in groups
    shape = (len(whole), *sizes, channels)
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    grids = [
        Grid(keras.ops.convert_to_tensor(term), tuple(sizes), channels) for term in x
    ]

    def along(matrix, x):
        return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)

    def assert_same(values, expected):
        values = np.reshape(numpy(values), expected.shape)
        np.testing.assert_allclose(values, expected, rtol=0, atol=2e-5)

    expected = [along(matrix, x[0]) for matrix in whole]
    actual = grids[0].along(axis, matrices[1])
    assert actual.sizes == expected[1].shape[:2]
    assert_same(actual.values, expected[1])
    for values, of_matrix in zip(
        grids[0].stacked_along(axis, matrices).values, expected, strict=True
    ):
        assert_same(values, of_matrix)
    expected = sum(along(*pair) for pair in zip(whole, x, strict=True))
    assert_same(summed_along(axis, matrices, grids).values, expected)


@each_boundary
def test_a_tile_sees_as_many_pixels_of_a_longer_axis(boundary):
    def widths(size):
        factors = kernels.axis_factors(size, 6.0, 2, boundary, 1e-3)
        ends = factors.analysis, factors.synthesis
        return [_tiles(matrix)[1].shape[1:] for matrix in ends]

    difference = np.subtract(widths(4096), widths(2048))
    assert np.abs(difference).max() <= 1  # as the ends lie


def test_short_axes_have_dense_matrices():
    """Unless these are of full rank and narrow."""
    assert isinstance(
        kernels.axis_factors(64, 6.0, 2, "zero", 1e-3).analysis, np.ndarray
    )
    assert isinstance(kernels.axis_factors(16, 1.0, 2, "zero", 1e-3).jets, np.ndarray)
    jets = kernels.axis_factors(64, 1.0, 2, "zero", 1e-3).jets
    assert isinstance(jets[0], kernels.Stencil)


@pytest.mark.parametrize("sigma", [1.0, 6.0])
def test_layer_is_that_of_a_small_part_of_the_image(sigma):
    """Far from the edges a pixel knows nothing of the size of the image."""
    layer = GaussDerConv(3, sigma, epsilon=1e-5)
    x = np.random.default_rng(0).normal(size=(1, 288, 288, 2)).astype("float32")
    whole = numpy(layer(x))[:, 140:148, 140:148]
    part = numpy(layer(x[:, 80:208, 80:208]))[:, 60:68, 60:68]
    np.testing.assert_allclose(whole, part, rtol=0, atol=1e-4)
