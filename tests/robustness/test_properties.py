"""Whatever the arguments: a result of the right shape without a NaN, or an error."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock, ScaleChannels
from tests._drawn import cases, examples, scale_sets


@pytest.mark.slow
@examples(40)
@given(cases(), st.booleans())
def test_blocks(case, training):
    """And with them the convolutions that they are made of."""
    block, dtype = GaussDerResidualBlock(**case.options), case.options["dtype"]
    images = keras.ops.convert_to_tensor(case.images(), dtype)
    if case.options["sigma"] > max(case.sizes):
        with pytest.raises(ValueError, match="reaches far beyond the image"):
            block(images, training=training)
        return
    outputs = block(images, training=training)
    expected = tuple(block.compute_output_shape(case.shape()))
    assert tuple(outputs.shape) == expected
    assert sorted(expected) == sorted((case.batch, *case.sizes, block.filters))
    assert keras.backend.standardize_dtype(outputs.dtype) == dtype
    values = keras.ops.convert_to_numpy(keras.ops.cast(outputs, "float32"))
    assert np.isfinite(values).all() and (values >= 0).all()


@examples(15)
@given(cases(dtypes=("float32",)), scale_sets())
def test_scale_channels_are_the_layer_at_each_scale(case, sigma0):
    if case.options["sigma"] * max(1, *sigma0) > max(case.sizes):
        return
    layer = GaussDerConv(**case.options)
    outputs = keras.ops.convert_to_numpy(
        ScaleChannels(layer, sigma0, None)(case.images())
    )
    assert outputs.shape[:2] == (case.batch, len(sigma0))
    for index, scale in enumerate(sigma0):
        options = {**case.options, "sigma": scale * case.options["sigma"]}
        single = GaussDerConv(**options)
        single.build(case.shape())
        for own, weight in zip(single.weights, layer.weights, strict=True):
            if len(own.shape):  # but for the logarithm of σ
                own.assign(weight)
        expected = keras.ops.convert_to_numpy(single(case.images()))
        np.testing.assert_allclose(outputs[:, index], expected, rtol=1e-3, atol=1e-4)
