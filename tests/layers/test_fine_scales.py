"""Where scales are fine, one convolution of smoothed values gives what kernels give."""

import keras
import numpy as np
import pytest

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.layers._fine_scales import is_fine
from tests import _reference
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import randomize
from tests.theory.images import natural_images

SHAPES = cases([(40,), (33, 40), (300, 40)], [(33, 40)])


def is_applied(shape: tuple, sigma: float = 1.0, **options):
    """Whether a layer smooths images of this shape and convolves them."""
    layer = GaussDerConv(2, sigma, **options)
    layer.build((None, *shape, 3))
    given = (layer.order, layer.boundary, layer.epsilon)
    axes = [kernels.axis_factors(size, sigma, *given) for size in shape]
    kernel = layer.depthwise_kernel if layer.separable else layer.kernel
    return is_fine(axes, kernel)


@pytest.mark.parametrize("boundary", kernels.BOUNDARIES)
@pytest.mark.parametrize("sigma", [0.5, 2.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_scipys_and_gradients_those_of_a_linear_map(shape, sigma, boundary):
    options = {"boundary": boundary, "zero_order": True, "epsilon": 1e-5}
    assert is_applied(shape, sigma, **options)
    layer = GaussDerConv(4, sigma, use_bias=False, **options)
    layer.build((None, *shape, 3))
    randomize(layer)
    random = np.random.default_rng(0)
    x, direction = random.normal(size=(2, 2, *shape, 3))
    kernel, other = layer.kernel.numpy(), random.normal(size=layer.kernel.shape)

    def expected(x, kernel):
        return _reference.jet_layer(x, kernel, layer.indices, sigma, boundary)

    y = keras.ops.convert_to_numpy(layer(x.astype("float32")))
    scale = np.abs(expected(x, kernel)).max()
    np.testing.assert_allclose(y, expected(x, kernel), rtol=0, atol=2e-5 * scale)
    # ⟨ȳ, L d⟩ = ⟨Lᵀ ȳ, d⟩, of what is linear in the images and in the weights.
    upstream = random.normal(size=y.shape)
    of_x, of_kernel = gradients(layer, x, upstream.astype("float32"))
    for gradient, d, along in (
        (of_x, direction, expected(direction, kernel)),
        (of_kernel, other, expected(x, other)),
    ):
        allowed = 2e-5 * np.linalg.norm(gradient) * np.linalg.norm(d)
        assert abs(np.sum(gradient * d) - np.sum(upstream * along)) < allowed


def test_where_it_is_applied():
    assert is_applied((64,)) and is_applied((64, 64)) and is_applied((300, 300))
    assert is_applied((64, 64), boundary="symmetric", zero_order=True, order=1)
    # Long kernels have better ways.
    assert is_applied((64, 64), sigma=2.4) and is_applied((300, 300), sigma=2.4)
    assert not is_applied((300, 300), sigma=2.6)
    assert not is_applied((64, 64), sigma=6.0)
    assert not is_applied((8, 64))  # narrower than the kernel
    assert not is_applied((64, 64), order=3)
    assert not is_applied((64, 64), separable=True)
    assert not is_applied((16, 16, 16))


def test_it_is_applied_in_networks_that_leave_something_out():
    """The tolerance of a network that looks anywhere changes nothing in whole maps."""
    samples = kernels.Samples(64, least_weight=0.04)
    axis = (64, 1.0, 2, "zero", 0.03)
    assert kernels.axis_factors(*axis, samples, samples).composed
    # Few coefficients are faster.
    assert not kernels.axis_factors(64, 2.4, 2, "zero", 0.03).composed
    seen = kernels.Samples(64, influence=9.0)
    assert not kernels.axis_factors(*axis, samples, seen).composed
    assert not kernels.axis_factors(*axis, samples, samples, step=0.7).composed


@pytest.mark.parametrize("packed", [True, False])
def test_scales_in_any_order_are_what_each_is_alone(packed):
    image = keras.Input((40, 40, 2))
    layer = GaussDerConv(3, 1.0)
    y = layer(image)
    if not packed:  # a layer that sees several positions takes whole maps
        y = keras.layers.AveragePooling2D(3, 1, "same")(y)
    network = keras.Model(image, y)
    randomize(layer)
    x = np.random.default_rng(0).normal(size=(2, 40, 40, 2)).astype("float32")
    scales = (1.0, 5.0, 6.0, 0.6, 0.8, 3.0)
    maps = keras.ops.convert_to_numpy(ScaleChannels(network, scales)(x))
    for number, scale in enumerate(scales):
        alone = keras.ops.convert_to_numpy(ScaleChannels(network, [scale])(x))[:, 0]
        np.testing.assert_allclose(maps[:, number], alone, atol=1e-5)


def test_rounding_is_magnified_little_where_differences_are_taken():
    """In ten bits, as TF32 has; at a coarse scale differences would be lost."""

    def error(sigma):
        image = natural_images(64, offset=0.5)[0, ..., 0]
        smooth = _reference.derivative(image, sigma, 0, 0, "symmetric")
        mantissa, exponent = np.frexp(smooth)
        rounded = np.ldexp(np.round(mantissa * 2**11) / 2**11, exponent)
        exact = np.diff(smooth, 2, axis=0)
        lost = np.diff(rounded, 2, axis=0) - exact
        return np.linalg.norm(lost) / np.linalg.norm(exact)

    assert error(2.5) < 0.02 and error(8.0) > 0.1, [error(s) for s in (1.0, 2.5, 8.0)]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its graphs")
def test_images_whose_size_only_the_graph_knows():
    import tensorflow as tf

    def network(size):
        image = keras.Input((size, size, 2))
        channel = keras.Model(image, GaussDerConv(3, 1.2)(image))
        image = keras.Input((size, size, 2))
        return keras.Model(image, ScaleChannels(channel, (1.0, 4.0, 0.5))(image))

    def differentiated(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = any_size(x)
            loss = tf.reduce_sum(tf.square(y))
        return y, tape.gradient(loss, any_size.trainable_variables[0])

    any_size, known = network(None), network(40)
    known.set_weights(any_size.get_weights())
    signature = [tf.TensorSpec((None, None, None, 2))]
    graph = tf.function(differentiated, input_signature=signature)
    operations = graph.get_concrete_function().graph.get_operations()
    assert [op.type for op in operations].count("Conv2DBackpropFilter") == 2
    x = np.random.default_rng(0).normal(size=(2, 40, 40, 2)).astype("float32")
    y, gradient = graph(x)
    np.testing.assert_allclose(y, known(x), rtol=0, atol=5e-3)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(known(x)))
    expected = tape.gradient(loss, known.trainable_variables[0])
    error = np.abs(gradient - expected).max() / np.abs(expected).max()
    assert error < 5e-3


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its graphs")
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((24, 30), {"separable": True}),
        ((24, 30), {"order": 3}),
        ((12, 14, 16), {}),
        ((5, 4), {}),  # smaller than the kernel
        ((24, 30), {"boundary": "symmetric"}),
    ],
)
def test_what_is_not_one_convolution_takes_unknown_sizes_too(shape, options):
    import tensorflow as tf

    layer = GaussDerConv(4, 0.7, **options)
    image = keras.Input((*[None] * len(shape), 3))
    model = keras.Model(image, layer(image))

    def differentiated(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x)
            loss = tf.reduce_sum(tf.square(y))
        return y, *tape.gradient(loss, [x, *model.trainable_variables])

    x = np.random.default_rng(0).normal(size=(2, *shape, 3)).astype("float32")
    signature = [tf.TensorSpec((*[None] * (len(shape) + 1), 3))]
    graph = tf.function(differentiated, input_signature=signature)
    for found, known in zip(graph(x), differentiated(tf.constant(x)), strict=True):
        assert np.abs(found - known).max() <= 1e-3 * np.abs(known).max()
