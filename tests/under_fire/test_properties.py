"""Whatever the arguments: a result of the right shape without a NaN, or an error."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_gdrn import kernels
from keras_gdrn.data import imresize, rescale
from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    ScalePooling,
)
from tests import _reference
from tests._gradients import assert_gradients_are_slopes
from tests.under_fire.cases import cases, scale_sets, scales

# The same examples each time; and no deadline: the first call of an operation is slow.
few = settings(max_examples=40, deadline=None, derandomize=True)
fewer = settings(few, max_examples=15)
many = settings(few, max_examples=200)


def assert_sound(outputs, shape: tuple[int, ...], dtype: str) -> None:
    assert tuple(outputs.shape) == shape
    assert keras.backend.standardize_dtype(outputs.dtype) == dtype
    values = keras.ops.convert_to_numpy(keras.ops.cast(outputs, "float32"))
    assert np.isfinite(values).all()


def applied(layer, case, **options):
    """The layer's outputs; or None, where it must refuse the image and does."""
    images = keras.ops.convert_to_tensor(case.images(), layer.compute_dtype)
    if case.options["sigma"] <= max(case.sizes):
        return layer(images, **options)
    with pytest.raises(ValueError, match="reaches far beyond the image"):
        layer(images, **options)
    return None


@few
@given(cases())
def test_convolution(case):
    layer = GaussDerConv(**case.options)
    outputs = applied(layer, case)
    if outputs is not None:
        expected = tuple(layer.compute_output_shape(case.shape()))
        assert_sound(outputs, expected, case.options["dtype"])
        assert sorted(expected) == sorted(
            (case.batch, *case.sizes, case.options["filters"])
        )


@fewer
@given(cases(), st.booleans())
def test_residual_block(case, training):
    layer = GaussDerResidualBlock(**case.options)
    outputs = applied(layer, case, training=training)
    if outputs is not None:
        expected = tuple(layer.compute_output_shape(case.shape()))
        assert_sound(outputs, expected, case.options["dtype"])
        assert (keras.ops.convert_to_numpy(outputs) >= 0).all()


@few
@given(cases(dtypes=("float32",)))
def test_convolution_equals_scipy(case):
    options = {**case.options, "separable": False, "data_format": "channels_last"}
    case = case._replace(options={**options, "epsilon": 1e-6})
    layer = GaussDerConv(**case.options)
    outputs = applied(layer, case)
    if outputs is None:
        return
    indices = kernels.multi_indices(len(case.sizes), layer.order, layer.zero_order)
    kernel = keras.ops.convert_to_numpy(layer.kernel)
    arguments = (kernel, indices, layer.sigma, layer.boundary)
    expected = _reference.jet_layer(case.images(), *arguments)
    strength = _strength(case, *arguments)
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(outputs), expected, atol=1e-5 * strength
    )


def _strength(case, kernel, indices, sigma, boundary) -> float:
    """How large the terms are that make up the result, and its rounding errors."""
    total = 0.0
    for alpha, mix in zip(indices, kernel, strict=True):
        term = _reference.jet_layer(case.images(), mix[None], [alpha], sigma, boundary)
        total += np.abs(term).max() + sigma ** sum(alpha) * np.abs(mix).max()
    return total


@fewer
@given(cases(dtypes=("float64",)))
@pytest.mark.usefixtures("float64")
def test_gradients_are_slopes(case):
    if case.options["sigma"] <= max(case.sizes):
        layer = GaussDerConv(**case.options)
        layer.build(case.shape())
        # Zero along an axis of one pixel, where nothing can be differentiated.
        assert_gradients_are_slopes(layer, case.images(), idle=-1.0)


@fewer
@given(cases(dtypes=("float32",)), scale_sets())
def test_scale_channels_are_the_layer_at_each_scale(case, sigma0):
    if case.options["sigma"] * max(sigma0) > max(case.sizes):
        return
    layer = GaussDerConv(**case.options)
    outputs = ScaleChannels(layer, sigma0)(case.images())
    assert tuple(outputs.shape)[:2] == (case.batch, len(sigma0))
    for index, scale in enumerate(sigma0):
        options = {**case.options, "sigma": scale * case.options["sigma"]}
        alone = GaussDerConv(**options)
        alone.build(case.shape())
        for own, weight in zip(alone.weights, layer.weights, strict=True):
            if len(own.shape):  # but for the logarithm of σ
                own.assign(weight)
        found = keras.ops.convert_to_numpy(outputs)[:, index]
        expected = keras.ops.convert_to_numpy(alone(case.images()))
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@few
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


@many
@given(
    st.integers(1, 60),
    scales(40.0),
    st.integers(0, 4),
    st.sampled_from(kernels.BOUNDARIES),
    st.sampled_from([1e-8, 1e-3, 0.3]),
)
def test_factors_are_the_operators_to_their_tolerance(
    size, sigma, order, boundary, epsilon
):
    factors = kernels.axis_factors(size, sigma, order, boundary, epsilon)
    operators = [
        kernels.axis_operator(size, sigma, a, boundary) for a in range(order + 1)
    ]
    largest = np.linalg.norm(np.hstack(operators), 2)
    for jet, operator in zip(factors.jets, operators, strict=True):
        product = jet
        if factors.analysis is not None:
            product = product @ factors.analysis
        if factors.synthesis is not None:
            product = factors.synthesis @ product
        assert np.linalg.norm(operator - product, 2) <= 2 * epsilon * largest + 1e-14


@many
@given(
    st.integers(1, 30),
    st.integers(1, 30),
    st.floats(0.05, 5),
    st.floats(0, 1),
    st.integers(1, 40),
    st.sampled_from(["mirror", "zero"]),
)
def test_rescaling_keeps_what_is_constant(
    height, width, factor, value, canvas, extension
):
    image = np.full((height, width, 1), value, "float32")
    resized = imresize(image, factor)
    # The nominal product, 1.1 * 30, may be a rounding error above the whole number.
    for found, size in zip(resized.shape, (height, width), strict=False):
        assert found in (np.ceil(factor * size - 1e-9), np.ceil(factor * size))
    np.testing.assert_allclose(resized, value, atol=1e-5)
    placed = rescale(image, factor, canvas, extension)
    assert placed.shape == (canvas, canvas, 1)
    inside = np.full_like(placed, value)
    if extension == "zero":
        assert ((np.abs(placed - value) < 1e-5) | (placed == 0)).all()
    else:
        np.testing.assert_allclose(placed, inside, atol=1e-5)
