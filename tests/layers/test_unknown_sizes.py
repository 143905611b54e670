"""Where only the graph knows the sizes, layers give what they give elsewhere."""

from functools import partial

import keras
import numpy as np
import pytest

from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.models import scale_channel
from tests._cases import slowly
from tests.layers._contract import randomize

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="sizes are known elsewhere"
)

EXACT = {"epsilon": 1e-12, "dtype": "float64"}
conv = partial(GaussDerConv, 3, **EXACT)


def channels(network, *arguments, **options):
    return ScaleChannels(network, *arguments, **{"dtype": "float64", **options})


def channel(**options):
    return scale_channel((None, None, 2), 3, [4, 5], 1.3, epsilon=1e-12, **options)


def maps():
    whole = channel(boundary="symmetric")
    return keras.Model(whole.input, whole.get_layer("head").output)


CASES = {
    "separable": ([(24, 30)], lambda: conv(0.7, separable=True)),
    "coarse, separable": ([(9, 14)], lambda: conv(5.0, separable=True)),
    "order 3": ([(24, 30)], lambda: conv(0.7, order=3)),
    "volume": ([(12, 14, 16)], lambda: conv(0.7)),
    "fine": ([(24, 30), (5, 4)], lambda: conv(0.7)),
    "mirror": ([(24, 30)], lambda: conv(0.7, boundary="symmetric")),
    "learned, mirror": (
        [(9, 14), (12, 5)],
        lambda: conv(1.3, boundary="symmetric", trainable_sigma=True),
    ),
    "paper's scales": (
        [(40, 40)],
        lambda: channels(conv(1.2), (1.0, 4.0, 0.5), density=None),
    ),
    "windows": ([(24, 17), (7, 30)], lambda: channels(channel(), (0.5, 2.0))),
    "maximum": (
        [(24, 17)],
        lambda: channels(channel(spatial_selection="max"), (0.5, 1.0, 2.0)),
    ),
    "maps": ([(14, 11)], lambda: channels(maps(), (0.5, 2.0))),
}
# Of a table in single precision; otherwise the same to rounding.
TOLERANCES = dict.fromkeys(("windows", "maximum", "maps"), 1e-4)


@pytest.mark.parametrize("name", slowly(CASES, TOLERANCES))
def test_values_and_gradients_are_those_of_known_sizes(name):
    import tensorflow as tf

    keras.config.set_dtype_policy("float64")
    shapes, make = CASES[name]
    layer, unknown = make(), (None,) * (len(shapes[0]) + 1)
    layer.build((*unknown, 2))
    randomize(layer)

    def differentiated(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            loss = tf.reduce_sum(tf.square(y))
        weights = [weight.value for weight in layer.trainable_weights]
        return y, *tape.gradient(loss, [x, *weights])

    signature = [tf.TensorSpec((*unknown, 2), "float64")]
    graph = tf.function(differentiated, input_signature=signature)
    for shape in shapes:
        x = tf.constant(np.random.default_rng(0).normal(size=(2, *shape, 2)))
        for found, known in zip(graph(x), differentiated(x), strict=True):
            error = np.abs(found - known).max()
            assert error <= TOLERANCES.get(name, 1e-6) * np.abs(known).max()
