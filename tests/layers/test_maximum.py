"""The maximum that both selections take, where Keras' own on TensorFlow has gaps."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import ScalePooling, SpatialSelection
from keras_gdrn.layers._backends import maximum
from keras_gdrn.models import gauss_der_resnet
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


def test_one_nan_in_a_large_map_is_not_lost():
    """Where XLA on a CPU takes the maximum of several numbers at once."""
    x = np.random.default_rng(0).normal(size=(4, 40, 40, 3)).astype("float32")
    x[:, 20, 7] = np.nan
    selection, way = SpatialSelection("max"), lambda layer: layer
    if keras.backend.backend() == "jax":
        import jax

        way = jax.jit
    assert np.isnan(numpy(way(selection)(x))).all()


def test_means_of_what_float16_holds():
    large = np.full((2, 6, 6, 3), 60000, "float16")
    pooled = ScalePooling("average", 0.3, dtype="float16")(large, training=True)
    selected = SpatialSelection(dtype="float16")(large)
    for found in (pooled, selected):
        np.testing.assert_allclose(numpy(found), 60000, rtol=1e-3)


@pytest.mark.parametrize("mode", ["max", "logsumexp"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dropped_channels_do_not_count_and_nan_does(mode, dtype):
    """Also among scores that are nearly the lowest that the dtype has."""
    pool = ScalePooling(mode, dropout=0.9, seed=1, dtype=dtype)
    for value in (-6e4, 0.0, 6e4):
        x = np.full((50, 2, 1), value, "float32")
        x[:, 1] = value / 2
        pooled = numpy(pool(x, training=True)).astype("float32")
        for found in pooled.ravel():
            assert np.isclose([value, value / 2, value + np.log(2)], found, 1e-2).any()
    x = np.full((50, 2, 1), np.nan, "float32")
    assert np.isnan(numpy(pool(x, training=True)).astype("float32")).all()


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its debugger")
@pytest.mark.parametrize("selection", ["center", "max"])
def test_tensorflows_debugger_finds_nothing_infinite(selection):
    """In training and prediction, of the scores that each pooling makes of the same."""
    import tensorflow as tf

    model = gauss_der_resnet(
        (16, 16, 1), 3, [4], 1.3, [1.0, 2.0], spatial_selection=selection
    )
    scores = model.get_layer("scale_channels").output
    modes = ["max", "logsumexp", "average"] if selection == "max" else ["logsumexp"]
    pooled = [ScalePooling(mode, dropout=0.4)(scores) for mode in modes]
    model = keras.Model(model.input, keras.ops.concatenate(pooled, axis=1))
    x = np.random.default_rng(0).random((4, 16, 16, 1)).astype("float32")
    tf.debugging.enable_check_numerics()  # stops at what is not finite
    try:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss)
        model.fit(x, np.arange(4) % 3, epochs=2, verbose=0)
        assert np.isfinite(model.predict(x, verbose=0)).all()
    finally:
        tf.debugging.disable_check_numerics()
