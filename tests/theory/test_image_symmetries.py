"""Mirror and transposition symmetries of the Gaussian derivative layer."""

import numpy as np
import pytest

from tests._cases import cases
from tests.theory.counter_examples import HalfPixelShift
from tests.theory.networks import random_layer
from tests.theory.symmetry_assertions import (
    assert_mirror_covariant,
    assert_transposition_covariant,
)

RANDOM = np.random.default_rng(0)
# Unequal axes of even and odd size: an exchange of the two cannot go unseen.
IMAGES = RANDOM.normal(size=(2, 40, 33, 3)).astype("float32")
VOLUMES = RANDOM.normal(size=(1, 12, 10, 9, 2)).astype("float32")

KINDS = [
    {"sigma": 1.0},
    {"sigma": 4.0},
    {"order": 1},
    {"order": 3},
    {"zero_order": True, "sigma": 4.0},
    {"separable": True, "boundary": "symmetric"},
]


@pytest.mark.parametrize("options", cases(KINDS, KINDS[1::4]), ids=str)
def test_mirroring_and_transposition(options):
    layer = random_layer((40, 33, 3), 4, **options)
    for axis in (0, 1):
        assert_mirror_covariant(layer, IMAGES, axis=axis, tolerance=1e-3)
    # The first axis is that whose derivatives are taken last.
    assert_transposition_covariant(layer, IMAGES, axes=(1, 0), tolerance=1e-4)


def test_volumes():
    layer = random_layer((12, 10, 9, 2), 3, order=3)
    assert_mirror_covariant(layer, VOLUMES, axis=1, tolerance=1e-5)
    assert_transposition_covariant(layer, VOLUMES, axes=(2, 0, 1), tolerance=1e-5)


@pytest.mark.seen_on_tensorflow("the assertions are the same")
def test_kernels_of_even_size_along_one_axis_are_the_counter_example():
    layer = random_layer((40, 33, 3), 4, kind=HalfPixelShift)
    with pytest.raises(AssertionError, match="not mirror covariant"):
        assert_mirror_covariant(layer, IMAGES, axis=0, tolerance=0.1)
    with pytest.raises(AssertionError, match="not transposition covariant"):
        assert_transposition_covariant(layer, IMAGES, axes=(1, 0), tolerance=0.1)
