"""The maximum that both selections take, where Keras' own on TensorFlow has gaps."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import ScalePooling, SpatialSelection
from keras_gdrn.layers._maximum import maximum
from tests.layers._contract import numpy


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("axis", [1, (1, 2)])
def test_is_the_maximum(axis, dtype):
    x = keras.ops.cast(np.random.default_rng(0).normal(size=(3, 4, 5)) - 9, dtype)
    found = maximum(x, axis)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    np.testing.assert_array_equal(numpy(found), numpy(x).max(axis=axis))
    lowest = np.full((2, 3, 4), -np.inf, "float32")
    assert np.isneginf(numpy(maximum(lowest, axis))).all()


@pytest.mark.parametrize("layer", [ScalePooling("max"), SpatialSelection("max")])
def test_nan_is_not_lost(layer):
    x = np.ones((2, 3, 4), "float32")
    x[0, :, 1], x[1, 2, 3] = np.nan, np.nan
    ways = [layer]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        ways.append(tf.function(layer, jit_compile=True))
    for way in ways:
        found = numpy(way(x))
        np.testing.assert_array_equal(np.isnan(found), np.isnan(x).any(axis=1))
        np.testing.assert_array_equal(found[~np.isnan(found)], 1)


def test_means_of_what_float16_holds():
    large = np.full((2, 6, 6, 3), 60000, "float16")
    pooled = ScalePooling("average", 0.3, dtype="float16")(large, training=True)
    selected = SpatialSelection(dtype="float16")(large)
    for found in (pooled, selected):
        np.testing.assert_allclose(numpy(found), 60000, rtol=1e-3)
