"""Pooling over scales is the same for every order of the scale channels."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import ScalePooling
from tests.theory.invariance_assertions import assert_permutation_invariant
from tests.theory.networks import array

SCORES = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")


@pytest.mark.parametrize("mode", ["max", "logsumexp", "average"])
def test_pooling(mode):
    pool = ScalePooling(mode, dropout=0.3)
    assert_permutation_invariant(lambda x: array(pool(x)), SCORES, tolerance=1e-6)


def test_dense_over_scales_is_rejected():
    keras.utils.set_random_seed(0)
    dense = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4)])
    with pytest.raises(AssertionError, match="not invariant to permutations"):
        assert_permutation_invariant(lambda x: array(dense(x)), SCORES, tolerance=0.1)


def test_first_channel_is_rejected():
    with pytest.raises(AssertionError, match="not invariant to permutations"):
        assert_permutation_invariant(lambda x: x[:, 0], SCORES, tolerance=0.1)
