"""`GaussDerConv`: contract, and SciPy's correlations in float64 as the reference."""

import keras
import numpy as np
import pytest

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from tests import _reference
from tests.layers._contract import Case, each, randomize

BACKEND = keras.backend.backend()


def layer(filters=4, sigma=1.3, **fixed):
    return lambda **kwargs: GaussDerConv(filters, sigma, **{**fixed, **kwargs})


CASES = {
    "1-D": Case(layer(order=3), (9, 2), 3 * 2 * 4 + 4, (None, 2)),
    "2-D": Case(layer(activation="tanh"), (9, 6, 3), 5 * 3 * 4 + 4, (None, None, 3)),
    "3-D": Case(layer(order=1), (4, 5, 6, 2), 3 * 2 * 4 + 4, (None, None, None, 2)),
    "separable": Case(
        layer(separable=True), (7, 8, 3), 5 * 3 + 3 + 3 * 4 + 4, (7, None, 3)
    ),
    "trainable sigma": Case(
        layer(trainable_sigma=True), (7, 8, 3), 5 * 3 * 4 + 4 + 1, (None, None, 3)
    ),
    "channels first": Case(
        layer(data_format="channels_first"), (3, 7, 8), 5 * 3 * 4 + 4, (3, None, None)
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


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["kernel", "bias"]),
        (
            {"separable": True, "trainable_sigma": True},
            [
                *("depthwise_kernel", "pointwise_kernel", "depthwise_bias", "bias"),
                "log_sigma",
            ],
        ),
        (
            {"separable": True, "use_bias": False},
            ["depthwise_kernel", "pointwise_kernel"],
        ),
    ],
)
def test_weights_are_called_what_they_are(options, names):
    conv = GaussDerConv(4, 1.3, **options)
    conv.build((None, 8, 8, 3))
    assert [weight.name for weight in conv.weights] == names


def built(conv: GaussDerConv, shape: tuple) -> tuple[GaussDerConv, np.ndarray]:
    """The layer with a value of its own in every weight, and an input in float64."""
    conv.build((None, *shape))
    randomize(conv)
    return conv, np.random.default_rng(0).normal(size=(2, *shape))


def reference(conv: GaussDerConv, x: np.ndarray, sigma: float | None = None):
    dimensions = x.ndim - 2
    indices = kernels.multi_indices(dimensions, conv.order, conv.zero_order)
    y = _reference.jet_layer(
        x, conv.kernel.numpy(), indices, sigma or conv.sigma, conv.boundary
    )
    return y + (conv.bias.numpy() if conv.use_bias else 0)


def assert_equal(actual, expected, tolerance=1e-9):
    scale = np.abs(expected).max()
    actual = keras.ops.convert_to_numpy(actual)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


exact = {"epsilon": 1e-12, "dtype": "float64"}
each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)


@pytest.mark.usefixtures("float64")
@each_boundary
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("shape", "sigma"),
    [((11,), 0.5), ((12,), 5.0), ((9, 14), 1.0), ((16, 7), 6.0), ((5, 6, 7), 1.5)],
)
def test_equals_scipy(shape, sigma, order, boundary):
    conv = GaussDerConv(2, sigma, order=order, boundary=boundary, **exact)
    conv, x = built(conv, (*shape, 3))
    assert_equal(conv(x), reference(conv, x))


@pytest.mark.usefixtures("float64")
@each_boundary
@pytest.mark.parametrize("sigma", [0.25, 2.5, 15.0])
def test_zero_order_equals_scipy(sigma, boundary):
    conv = GaussDerConv(2, sigma, zero_order=True, boundary=boundary, **exact)
    conv, x = built(conv, (15, 10, 3))
    assert_equal(conv(x), reference(conv, x))


@pytest.mark.usefixtures("float64")
def test_mirror_is_repeated_on_an_image_smaller_than_the_kernel():
    conv, x = built(GaussDerConv(2, 6.0, boundary="symmetric", **exact), (3, 6, 1))
    assert_equal(conv(x), reference(conv, x))


@each_boundary
@pytest.mark.parametrize("sigma", [1.0, 4.0, 12.0])
def test_default_tolerance_is_kept_in_float32(sigma, boundary):
    conv, x = built(GaussDerConv(4, sigma, boundary=boundary), (32, 25, 3))
    difference = keras.ops.convert_to_numpy(conv(x)) - reference(conv, x)
    # Two axes, 2 epsilon each, against the strength of the whole jet.
    assert np.linalg.norm(difference) <= 4e-3 * np.linalg.norm(reference(conv, x))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("shape", [(10,), (9, 12), (4, 6, 5)])
def test_channels_first_is_the_transposed_layer(shape):
    conv, x = built(GaussDerConv(2, 1.0, **exact), (*shape, 3))
    first = GaussDerConv(2, 1.0, data_format="channels_first", **exact)
    first.build((None, 3, *shape))
    first.set_weights(conv.get_weights())
    y = keras.ops.convert_to_numpy(first(np.moveaxis(x, -1, 1)))
    assert_equal(np.moveaxis(y, 1, -1), reference(conv, x))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("sigma", "shape"), [(1.0, (9, 8)), (6.0, (20, 17)), (2.0, (9,))]
)
@pytest.mark.parametrize("zero_order", [False, True])
def test_separable_is_the_layer_with_factored_kernels(zero_order, shape, sigma):
    options = {"zero_order": zero_order, **exact}
    separable, x = built(GaussDerConv(5, sigma, separable=True, **options), (*shape, 3))
    depthwise, pointwise = separable.depthwise_kernel, separable.kernel
    standard, _ = built(GaussDerConv(5, sigma, **options), (*shape, 3))
    # C_α = diag(c_α) P, and the depthwise bias goes through P as well.
    standard.kernel.assign(depthwise.numpy()[:, :, None] * pointwise.numpy())
    bias = separable.depthwise_bias.numpy() @ pointwise.numpy() + separable.bias.numpy()
    standard.bias.assign(bias)
    assert_equal(separable(x), reference(standard, x))


@pytest.mark.usefixtures("float64")
@each_boundary
@pytest.mark.parametrize("trained", [0.4, 1.3, 10.0])
def test_trained_sigma_takes_the_place_of_the_initial_one(trained, boundary):
    conv = GaussDerConv(2, 1.3, boundary=boundary, trainable_sigma=True, **exact)
    conv, x = built(conv, (11, 8, 3))
    conv.log_sigma.assign(np.log(trained))
    assert_equal(conv(x), reference(conv, x, trained))


@pytest.mark.usefixtures("float64")
def test_trained_sigma_may_outgrow_the_image():
    conv = GaussDerConv(2, 1.3, trainable_sigma=True, **exact)
    conv, x = built(conv, (11, 8, 3))
    conv.log_sigma.assign(np.log(25.0))
    assert_equal(conv(x), reference(conv, x, 25.0), tolerance=1e-4)


@pytest.mark.usefixtures("float64")
def test_trained_sigma_is_multiplied_in_scale_channels():
    conv, x = built(GaussDerConv(2, 1.3, trainable_sigma=True, **exact), (11, 8, 3))
    conv.log_sigma.assign(np.log(0.9))
    y = ScaleChannels(conv, [0.5, 2.0], dtype="float64")(x)
    for channel, scale in enumerate((0.5, 2.0)):
        assert_equal(y[:, channel], reference(conv, x, 0.9 * scale))


def test_trainable_sigma_starts_at_sigma():
    conv, _ = built(GaussDerConv(2, 1.7, trainable_sigma=True), (8, 8, 1))
    conv = GaussDerConv.from_config(conv.get_config())
    conv.build((None, 8, 8, 1))
    assert np.exp(conv.log_sigma.numpy()) == pytest.approx(1.7)


@pytest.mark.usefixtures("float64")
@pytest.mark.skipif(BACKEND != "tensorflow", reason="tf.function")
@each_boundary
@pytest.mark.parametrize(
    ("sigma", "options"),
    [
        (0.5, {"order": 3}),
        (5.0, {}),
        (5.0, {"separable": True}),
        (1.3, {"trainable_sigma": True}),
    ],
)
def test_unknown_sizes_give_what_known_sizes_give(sigma, options, boundary):
    import tensorflow as tf

    conv = GaussDerConv(2, sigma, boundary=boundary, **options, **exact)
    conv, _ = built(conv, (8, 8, 3))
    unknown = tf.TensorSpec((None, None, None, 3), tf.float64)
    traced = tf.function(conv, input_signature=[unknown])
    for shape in ((9, 14), (12, 5)):
        x = np.random.default_rng(0).normal(size=(2, *shape, 3))
        assert_equal(traced(x), keras.ops.convert_to_numpy(conv(x)))


def test_layer_takes_any_size_after_it_was_built():
    conv, _ = built(GaussDerConv(2, 1.0), (8, 8, 3))
    assert conv(np.zeros((1, 5, 30, 3), "float32")).shape == (1, 5, 30, 2)


def test_options_are_honored():
    conv = GaussDerConv(
        3,
        1.0,
        kernel_initializer=keras.initializers.Constant(0.5),
        bias_initializer="ones",
        kernel_regularizer=keras.regularizers.L2(0.1),
        bias_regularizer=keras.regularizers.L1(0.1),
        activity_regularizer=keras.regularizers.L1(1.0),
        kernel_constraint="non_neg",
        bias_constraint=keras.constraints.MaxNorm(1.0),
        activation="relu",
    )
    conv.build((None, 8, 8, 2))
    y = keras.ops.convert_to_numpy(conv(np.ones((1, 8, 8, 2), "float32")))
    kernel, bias = conv.kernel.numpy(), conv.bias.numpy()
    assert np.all(kernel == 0.5) and np.all(bias == 1)
    assert y.min() >= 0
    losses = [float(keras.ops.convert_to_numpy(loss)) for loss in conv.losses]
    activity = np.abs(y).sum()
    expected = [0.1 * np.sum(kernel**2), 0.1 * np.sum(np.abs(bias)), activity]
    np.testing.assert_allclose(sorted(losses), sorted(expected), rtol=1e-5)
    assert isinstance(conv.kernel.constraint, keras.constraints.NonNeg)
    assert isinstance(conv.bias.constraint, keras.constraints.MaxNorm)


def test_he_uniform_counts_the_jet_as_the_window():
    conv = GaussDerConv(64, 1.0)
    conv.build((None, 8, 8, 16))
    limit = np.sqrt(6 / (5 * 16))
    kernel = np.abs(conv.kernel.numpy())
    assert 0.98 * limit < kernel.max() <= limit
