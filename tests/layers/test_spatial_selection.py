"""`SpatialSelection`: contract, and the central pixels and the maximum by slicing."""

import numpy as np
import pytest

from keras_gdrn.layers import SpatialSelection
from tests.layers._contract import WEIGHTLESS, Case, drawn, each, numpy


def selection(*args, **fixed):
    return lambda **kwargs: SpatialSelection(*args, **{**fixed, **kwargs})


CASES = {
    "center": Case(selection(), (6, 7, 3)),
    "max, 3-D": Case(selection("max"), (2, 3, 4, 3)),
    "1-D, channels first": Case(
        selection("center", data_format="channels_first"), (3, 6), 0, (3, None)
    ),
}


@each(CASES, on_jax=("center", "max, 3-D"), checks=WEIGHTLESS)
def test_contract(case, check):
    check(case)


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
def test_selects_the_mean_of_the_central_pixels_or_the_maximum(shape, center):
    x, axes = drawn(2, *shape, 3), tuple(range(1, len(shape) + 1))
    expected = {
        "center": x[(slice(None), *np.index_exp[center])].mean(axes),
        "max": x.max(axes),
    }
    for mode, of_mode in expected.items():
        last = SpatialSelection(mode)(x)
        first = SpatialSelection(mode, "channels_first")(np.moveaxis(x, -1, 1))
        for actual in map(numpy, (last, first)):
            np.testing.assert_allclose(actual, of_mode, rtol=1e-6, atol=1e-7)
