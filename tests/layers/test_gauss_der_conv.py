"""`GaussDerConv`: contract, and SciPy's correlations in float64 as the reference."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_gdrn.layers import GaussDerConv
from tests import _reference
from tests._drawn import cases, examples
from tests._gradients import DTYPE, InputGradient, assert_gradients_are_slopes
from tests.layers._contract import Case, drawn, each, numpy, randomize


def layer(filters=4, sigma=1.3, **fixed):
    return lambda **kwargs: GaussDerConv(filters, sigma, **{**fixed, **kwargs})


CASES = {
    "1-D": Case(layer(order=3), (9, 2), 3 * 2 * 4 + 4),
    "2-D": Case(layer(activation="tanh"), (9, 6, 3), 5 * 3 * 4 + 4),
    "3-D, channels first": Case(
        layer(order=1, data_format="channels_first"),
        (2, 4, 5, 6),
        3 * 2 * 4 + 4,
        (2, None, None, None),
    ),
    "trainable sigma": Case(layer(trainable_sigma=True), (7, 8, 3), 5 * 3 * 4 + 4 + 1),
    "separable": Case(
        layer(separable=True), (7, 8, 3), 5 * 3 + 3 + 3 * 4 + 4, (7, None, 3)
    ),
    "zero order, mirror, no bias": Case(
        layer(sigma=4.0, zero_order=True, boundary="symmetric", use_bias=False),
        (12, 12, 3),
        6 * 3 * 4,
        (None, 12, 3),
    ),
}


@each(CASES, on_jax=("2-D", "trainable sigma"))
def test_contract(case, check):
    check(case)


def test_weights_are_called_what_they_are():
    first, last = ["depthwise_kernel", "pointwise_kernel"], ["bias", "log_sigma"]
    for separable, names in ((False, ["kernel"]), (True, [*first, "depthwise_bias"])):
        conv = GaussDerConv(4, 1.3, separable=separable, trainable_sigma=True)
        conv.build((None, 8, 8, 3))
        assert [weight.name for weight in conv.weights] == [*names, *last]
    assert np.exp(conv.log_sigma.numpy()) == pytest.approx(1.3)


def built(conv, shape: tuple):
    """The layer with a value of its own in every weight, and an input in float64."""
    conv.build((None, *shape))
    randomize(conv)
    return conv, drawn(2, *shape).astype("float64")


def reference(conv: GaussDerConv, x: np.ndarray, sigma: float | None = None):
    """By SciPy, and how large the terms are that it is the sum of."""
    first = conv.data_format == "channels_first"
    x = np.moveaxis(x, 1, -1) if first else x
    mix, bias = conv.kernel.numpy(), conv.bias.numpy() if conv.use_bias else 0.0
    if conv.separable:  # C_α = diag(c_α) P, and the depthwise bias goes through P too
        bias += (conv.depthwise_bias.numpy() @ mix) if conv.use_bias else 0.0
        mix = conv.depthwise_kernel.numpy()[:, :, None] * mix
    sigma = sigma or conv.sigma
    y, strength = bias, np.abs(bias).max()
    for alpha, weight in zip(conv.indices, mix, strict=True):
        term = _reference.jet_layer(x, weight[None], [alpha], sigma, conv.boundary)
        strength += np.abs(term).max() + sigma ** sum(alpha) * np.abs(weight).max()
        y = y + term
    return (np.moveaxis(y, -1, 1) if first else y), strength


def assert_equal(actual, expected, strength=None, tolerance=1e-9):
    atol = tolerance * (strength or np.abs(expected).max())
    actual = keras.ops.convert_to_numpy(actual)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


exact = {"epsilon": 1e-12, "dtype": "float64"}


@pytest.mark.usefixtures("float64")
@examples(60)
@given(cases(), st.floats(0.3, 4))
def test_equals_scipy(case, trained):
    options = {**case.options, **exact}
    if options["sigma"] > max(case.sizes):
        with pytest.raises(ValueError, match="reaches far beyond the image"):
            GaussDerConv(**options).build(case.shape())
        return
    conv, x = built(GaussDerConv(**options), case.shape()[1:])
    sigma = conv.sigma
    if conv.trainable_sigma:  # what it is trained to takes the place of the initial one
        sigma = min(sigma * trained, max(case.sizes))
        conv.log_sigma.assign(np.log(sigma))
    y = conv(x)
    assert tuple(conv.compute_output_shape(x.shape)) == y.shape
    assert_equal(y, *reference(conv, x, sigma))


@pytest.mark.usefixtures("float64")
def test_trained_sigma_may_outgrow_the_image():
    conv, x = built(GaussDerConv(2, 1.3, trainable_sigma=True, **exact), (11, 8, 3))
    conv.log_sigma.assign(np.log(25.0))
    assert_equal(conv(x), reference(conv, x, 25.0)[0], tolerance=1e-4)


def test_options_are_honored():
    options = {
        "kernel_initializer": keras.initializers.Constant(0.5),
        "bias_initializer": "ones",
        "kernel_regularizer": keras.regularizers.L2(0.1),
        "bias_regularizer": keras.regularizers.L1(0.1),
        "activity_regularizer": keras.regularizers.L1(1.0),
        "kernel_constraint": "non_neg",
        "bias_constraint": keras.constraints.MaxNorm(1.0),
        "activation": "relu",
    }
    conv = GaussDerConv(3, 1.0, **options)
    conv.build((None, 8, 8, 2))
    y = numpy(conv(np.ones((1, 8, 8, 2), "float32")))
    kernel, bias = conv.kernel.numpy(), conv.bias.numpy()
    assert np.all(kernel == 0.5) and np.all(bias == 1) and y.min() >= 0
    expected = [0.1 * np.sum(kernel**2), 0.1 * np.sum(np.abs(bias)), np.abs(y).sum()]
    losses = sorted(map(float, map(numpy, conv.losses)))
    np.testing.assert_allclose(losses, sorted(expected), rtol=1e-5)
    assert isinstance(conv.kernel.constraint, keras.constraints.NonNeg)
    assert isinstance(conv.bias.constraint, keras.constraints.MaxNorm)


def test_he_uniform_counts_the_jet_as_the_window():
    conv = GaussDerConv(64, 1.0)
    conv.build((None, 8, 8, 16))
    limit = np.sqrt(6 / (5 * 16))
    kernel = np.abs(conv.kernel.numpy())
    assert 0.98 * limit < kernel.max() <= limit


# Gradients


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
@examples(15)
@given(cases(dtypes=("float64",)))
def test_any_layer(case):
    if case.options["sigma"] <= max(case.sizes):
        layer = GaussDerConv(**case.options)
        layer.build(case.shape())
        # Zero along an axis of one pixel, where nothing can be differentiated.
        assert_gradients_are_slopes(layer, case.images(), idle=-1.0)


@pytest.mark.parametrize("sigma", [0.7, 4.0])
def test_second_derivatives(sigma):
    """A penalty on the gradient in the image has a gradient in the weights."""
    conv = GaussDerConv(2, sigma, activation="tanh", dtype=DTYPE)
    conv, x = built(conv, (9, 12, 2))
    assert_gradients_are_slopes(InputGradient(conv), x)


def test_slopes_notice_a_wrong_gradient():
    class Wrong(keras.layers.Dense):
        def call(self, inputs):
            kernel = keras.ops.stop_gradient(self.kernel)
            return super().call(inputs) + keras.ops.matmul(inputs, kernel)

    with pytest.raises(AssertionError):
        assert_gradients_are_slopes(*built(Wrong(3, dtype=DTYPE), (4,)))


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="of JAX")
def test_forward_mode():
    import jax

    conv, x = built(layer(3, 1.5, activation="tanh")(), (6, 5, 2))
    x = x[:1].astype("float32")
    backward = jax.jit(jax.jacrev(conv))(x)
    forward = jax.jit(jax.jacfwd(conv))(x)
    np.testing.assert_allclose(forward, backward, rtol=1e-3, atol=1e-5)
