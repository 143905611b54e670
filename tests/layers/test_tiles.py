"""Tiles along an axis give what the whole matrices give."""

import keras
import numpy as np
import pytest

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.layers._grids import Grid, stacked
from keras_gdrn.layers._tiles import tiled

SIZES = [(112, 112), (129, 129), (160, 150), (113, 99)]
each_size = pytest.mark.parametrize(("size", "outputs"), SIZES)
each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)


def matrices(size, outputs, boundary="zero", epsilon=1e-3):
    leaving = kernels.Samples(outputs)
    axis = (size, 0.8, 2, boundary, epsilon)
    return list(kernels.axis_factors(*axis, leaving=leaving).jets)


def numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


@each_boundary
@each_size
@pytest.mark.parametrize("axis", [0, 1])
def test_products_are_those_of_the_whole_matrices(axis, size, outputs, boundary):
    operators = matrices(size, outputs, boundary)
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
    assert tiled(matrices(64, 64)) is None
    wide = list(kernels.axis_factors(128, 24.0, 2, "zero", 1e-12).jets)
    assert tiled(wide) is None


@each_boundary
def test_a_tile_sees_as_many_pixels_of_a_larger_image(boundary):
    widths = [
        tiled(matrices(size, size, boundary)).blocks.shape[2:] for size in (128, 256)
    ]
    assert widths[0] == widths[1]


@each_boundary
@pytest.mark.parametrize("size", [96, 301])
def test_what_lies_far_from_the_diagonal_is_left_out_to_the_tolerance(size, boundary):
    for epsilon in (1e-2, 1e-4):
        cut = matrices(size, size, boundary, epsilon)
        for order, matrix in enumerate(cut):
            whole = kernels.axis_operator(size, 0.8, order, boundary)
            assert np.linalg.norm(matrix - whole, 2) <= 0.01 * epsilon
            assert np.count_nonzero(matrix) < 20 * size


def test_layer_is_that_of_a_small_part_of_the_image():
    """Far from the edges a tile knows nothing of the size of the image."""
    layer = GaussDerConv(3, 1.0)
    x = np.random.default_rng(0).normal(size=(1, 160, 160, 2)).astype("float32")
    whole = numpy(layer(x))[:, 64:96, 64:96]
    part = numpy(layer(x[:, 48:112, 48:112]))[:, 16:48, 16:48]
    np.testing.assert_allclose(whole, part, rtol=0, atol=1e-4)
