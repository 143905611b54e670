"""Tiles along an axis give what the whole matrices give."""

import keras
import numpy as np
import pytest

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.layers._grids import Grid, stacked
from keras_gdrn.layers._tiles import tiled

each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)


def matrices(size, boundary="zero", epsilon=1e-3):
    return list(kernels.axis_factors(size, 0.8, 2, boundary, epsilon).jets)


def numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


@pytest.mark.parametrize(
    ("axis", "size", "boundary"),
    [(0, 256, "zero"), (1, 257, "symmetric"), (0, 259, "symmetric"), (1, 259, "zero")],
)
def test_products_are_those_of_the_whole_matrices(axis, size, boundary):
    operators = matrices(size, boundary)
    assert tiled(operators).columns.size < size * 2.5
    x = np.random.default_rng(0).normal(size=(3, size, size, 4)).astype("float32")
    grid, terms = Grid(x[0], (size, size)), [Grid(term, (size, size)) for term in x]

    def along(matrix, x):
        return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)

    def assert_same(actual, expected):
        sizes = expected.shape[-3:-1]
        assert actual.sizes == sizes
        values = np.reshape(numpy(actual.values), expected.shape)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-5)

    assert_same(grid.along(axis, operators[1]), along(operators[1], x[0]))
    expected = np.stack([along(matrix, x[0]) for matrix in operators])
    assert_same(grid.stacked_along(axis, operators), expected)
    expected = sum(along(*pair) for pair in zip(operators, x, strict=True))
    assert_same(stacked(terms).summed_along(axis, operators), expected)
    assert_same(grid.summed_along(axis, operators[:1]), along(operators[0], x[0]))


def test_short_axes_and_wide_kernels_are_not_cut():
    assert tiled(matrices(64)) is None
    wide = list(kernels.axis_factors(256, 48.0, 2, "zero", 1e-12).jets)
    assert tiled(wide) is None


@each_boundary
def test_a_tile_sees_as_many_pixels_of_a_larger_image(boundary):
    widths = [tiled(matrices(size, boundary)).blocks.shape[2:] for size in (256, 512)]
    assert widths[0] == widths[1]


@pytest.mark.parametrize(("size", "boundary"), [(256, "symmetric"), (301, "zero")])
def test_what_lies_far_from_the_diagonal_is_left_out_to_the_tolerance(size, boundary):
    for epsilon in (1e-2, 1e-4):
        cut = matrices(size, boundary, epsilon)
        for order, matrix in enumerate(cut):
            whole = kernels.axis_operator(size, 0.8, order, boundary)
            assert np.linalg.norm(matrix - whole, 2) <= 0.01 * epsilon
            assert np.count_nonzero(matrix) < 20 * size
            # What it makes of a constant stays.
            np.testing.assert_allclose(matrix.sum(1), whole.sum(1), rtol=0, atol=1e-14)


def test_layer_is_that_of_a_small_part_of_the_image():
    """Far from the edges a tile knows nothing of the size of the image."""
    layer = GaussDerConv(3, 1.0)
    x = np.random.default_rng(0).normal(size=(1, 288, 288, 2)).astype("float32")
    whole = numpy(layer(x))[:, 64:96, 64:96]
    part = numpy(layer(x[:, 48:112, 48:112]))[:, 16:48, 16:48]
    np.testing.assert_allclose(whole, part, rtol=0, atol=1e-4)
