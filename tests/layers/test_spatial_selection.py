"""`SpatialSelection`: contract, and the central pixels and the maximum by slicing."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import SpatialSelection
from tests._gradients import DTYPE, assert_gradients_are_slopes
from tests.layers._contract import WEIGHTLESS, Case, each


def selection(*args, **fixed):
    return lambda **kwargs: SpatialSelection(*args, **{**fixed, **kwargs})


CASES = {
    "center": Case(selection(), (6, 7, 3), unknown=(None, None, 3)),
    "max, 3-D": Case(selection("max"), (2, 3, 4, 3), unknown=(None,) * 3 + (3,)),
    "1-D, channels first": Case(
        selection("center", data_format="channels_first"), (3, 6), 0, (3, None)
    ),
}


@each(CASES, on_jax=("center", "max, 3-D"), checks=WEIGHTLESS)
def test_contract(case, check):
    check(case)


def image(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(2, *shape, 3)).astype("float32")


def assert_selects(x, expected, *args, **kwargs):
    actual = SpatialSelection(*args, **kwargs)(x)
    actual = keras.ops.convert_to_numpy(actual)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "center"),
    [
        ((1,), np.s_[0:1]),
        ((4,), np.s_[1:3]),
        ((5, 7), np.s_[2:3, 3:4]),
        ((4, 6), np.s_[1:3, 2:4]),
        ((5, 2), np.s_[2:3, 0:2]),
        ((3, 4, 6), np.s_[1:2, 1:3, 2:4]),
    ],
)
def test_center_is_the_mean_of_the_central_pixels(shape, center):
    x = image(*shape)
    axes = tuple(range(1, len(shape) + 1))
    expected = x[(slice(None), *np.index_exp[center])].mean(axes)
    assert_selects(x, expected)
    first = np.moveaxis(x, -1, 1)
    assert_selects(first, expected, data_format="channels_first")


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 2)])
def test_max_is_over_all_pixels(shape):
    x = image(*shape)
    expected = x.max(tuple(range(1, len(shape) + 1)))
    assert_selects(x, expected, "max")
    assert_selects(np.moveaxis(x, -1, 1), expected, "max", data_format="channels_first")


@pytest.mark.parametrize("mode", ["center", "max"])
def test_gradients(mode):
    assert_gradients_are_slopes(SpatialSelection(mode, dtype=DTYPE), image(4, 5))
