"""Whatever the arguments: a result of the right shape without a NaN, or an error."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    ScalePooling,
)
from tests._drawn import cases, examples, scale_sets


@examples(40)
@given(st.sampled_from([GaussDerConv, GaussDerResidualBlock]), cases(), st.booleans())
def test_layers(kind, case, training):
    layer, dtype = kind(**case.options), case.options["dtype"]
    images = keras.ops.convert_to_tensor(case.images(), dtype)
    options = {"training": training} if kind is GaussDerResidualBlock else {}
    if case.options["sigma"] > max(case.sizes):
        with pytest.raises(ValueError, match="reaches far beyond the image"):
            layer(images, **options)
        return
    outputs = layer(images, **options)
    expected = tuple(layer.compute_output_shape(case.shape()))
    assert tuple(outputs.shape) == expected
    assert sorted(expected) == sorted((*case.shape()[:1], *case.sizes, layer.filters))
    assert keras.backend.standardize_dtype(outputs.dtype) == dtype
    values = keras.ops.convert_to_numpy(keras.ops.cast(outputs, "float32"))
    assert np.isfinite(values).all()
    assert kind is GaussDerConv or (values >= 0).all()


@examples(15)
@given(cases(dtypes=("float32",)), scale_sets())
def test_scale_channels_are_the_layer_at_each_scale(case, sigma0):
    if case.options["sigma"] * max(sigma0) > max(case.sizes):
        return
    layer = GaussDerConv(**case.options)
    outputs = ScaleChannels(layer, sigma0)(case.images())
    assert tuple(outputs.shape)[:2] == (case.batch, len(sigma0))
    for index, scale in enumerate(sigma0):
        options = {**case.options, "sigma": scale * case.options["sigma"]}
        single = GaussDerConv(**options)
        single.build(case.shape())
        for own, weight in zip(single.weights, layer.weights, strict=True):
            if len(own.shape):  # but for the logarithm of σ
                own.assign(weight)
        found = keras.ops.convert_to_numpy(outputs)[:, index]
        expected = keras.ops.convert_to_numpy(single(case.images()))
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@examples(40)
@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.sampled_from(["max", "logsumexp", "average"]),
    st.sampled_from([0.0, 0.5, 0.99]),
    st.floats(-1e4, 1e4),
)
def test_pooling_is_between_the_least_and_the_greatest(
    batch, count, mode, dropout, middle
):
    scores = np.random.default_rng(0).normal(middle, 1, (batch, count, 3))
    layer = ScalePooling(mode, dropout=dropout)
    for training in (False, True):
        pooled = keras.ops.convert_to_numpy(layer(scores, training=training))
        assert pooled.shape == (batch, 3)
        slack = 1e-5 * abs(middle) + 1e-5
        assert (pooled >= scores.min(axis=1) - slack).all()
        above = np.log(count) if mode == "logsumexp" else 0.0
        assert (pooled <= scores.max(axis=1) + above + slack).all()
