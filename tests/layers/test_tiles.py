"""Products with few entries in each row give what the whole matrices give."""

import keras
import numpy as np
import pytest
import scipy.sparse

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.layers._grids import Grid, summed_along
from keras_gdrn.layers._tiles import _tiles
from tests._cases import cases
from tests.layers._contract import numpy

each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)
SIZE = 257


def operators(boundary: str) -> dict[str, list]:
    narrow = kernels.axis_factors(SIZE, 0.8, 2, boundary, 1e-3)
    wide = kernels.axis_factors(SIZE, 6.0, 2, boundary, 1e-3)
    part = kernels.axis_factors(
        *(SIZE + 40, 0.8, 2, boundary, 1e-3), leaving=kernels.Samples(SIZE)
    )
    return {
        "narrow": narrow.jets,
        "transposed": narrow.adjoint.jets,
        "of a part": part.jets,
        "transposed of a part": part.adjoint.jets,
        "sparse": wide.jets,
        "transposed sparse": wide.adjoint.jets,
        "back": wide.late.jets,
        "transposed back": wide.late.adjoint.jets,
    }


@pytest.mark.parametrize("boundary", cases(kernels.BOUNDARIES, ["symmetric"]))
@pytest.mark.parametrize("kind", operators("zero"))
@pytest.mark.parametrize("axis", [0, 1])
def test_products_are_those_of_the_whole_matrices(axis, kind, boundary):
    matrices = operators(boundary)[kind]
    whole = [matrix.toarray() for matrix in matrices]
    sizes = [3, 3]
    sizes[axis] = whole[0].shape[1]
    channels = 4
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
def test_a_pixel_of_a_longer_axis_takes_as_many_products(boundary):
    def products(size):
        factors = kernels.axis_factors(size, 6.0, 2, boundary, 1e-3)
        forms = factors.jets, factors.late.jets
        return [_tiles(matrices)[1].size / size for matrices in forms]

    np.testing.assert_allclose(products(4096), products(1024), rtol=0.15)


@pytest.mark.parametrize("outputs", [64, 255, 257])  # 257 is prime
def test_tiles_leave_no_rest_where_they_need_not(outputs):
    matrix = scipy.sparse.eye_array(outputs).tocsr()
    _, tiles, rows, _ = _tiles([matrix])[1].shape
    assert 0 <= tiles * rows - outputs < rows
    assert tiles * rows == outputs or outputs == 257


@pytest.mark.parametrize("sigma", [1.0, 6.0])
def test_layer_is_that_of_a_small_part_of_the_image(sigma):
    """Far from the edges a pixel knows nothing of the size of the image."""
    layer = GaussDerConv(3, sigma, epsilon=1e-5)
    x = np.random.default_rng(0).normal(size=(1, 288, 288, 2)).astype("float32")
    whole = numpy(layer(x))[:, 140:148, 140:148]
    part = numpy(layer(x[:, 80:208, 80:208]))[:, 60:68, 60:68]
    np.testing.assert_allclose(whole, part, rtol=0, atol=1e-4)
