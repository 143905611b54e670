"""Images as they come: 0 to 255 and 0 to 1 are the same, and others are not taken."""

import keras
import numpy as np
import pytest

from keras_gdrn.models import Preprocess, gauss_der_resnet, with_preprocess
from tests.layers._contract import randomize

BYTES = np.random.default_rng(0).integers(0, 256, (3, 6, 5, 2)).astype("uint8")
UNIT = (BYTES / 255).astype("float32")
DARK = np.array([2, 7], "uint8").reshape(2, 1, 1, 1) * np.ones((1, 4, 4, 1), "uint8")
OVERSHOOT = np.array([[[[-0.2]], [[1.4]]]], "float32")
# An answer must not depend on the other images of the batch.
MIXED = np.concatenate([BYTES[:1].astype("float32"), UNIT[1:]])


OF_BOTH_RANGES = [
    *((BYTES.astype(dtype), UNIT) for dtype in ("uint8", "float32", "int32")),
    (MIXED, UNIT),
    (DARK, DARK / 255),
    (UNIT, UNIT),
    (OVERSHOOT, OVERSHOOT),
]
OF_NEITHER = [
    2 * UNIT - 1,
    (UNIT - 0.5) / 0.29,  # standardized
    (UNIT - 0.13) / 0.31,  # as MNIST usually is
    257.0 * BYTES,  # 16 bits
    5 * UNIT,  # too dark for 255, and not whole
    BYTES - 120.0,
    np.where(UNIT > 0.9, np.nan, UNIT),
]


def test_both_ranges_are_one_and_others_have_no_answer():
    for values, expected in [*OF_BOTH_RANGES, *((x, np.nan) for x in OF_NEITHER)]:
        found = keras.ops.convert_to_numpy(Preprocess()(values))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.fixture
def model():
    network = gauss_der_resnet((6, 5, 2), 3, [4], 1.2, [1.0], order=1)
    randomize(network)
    return with_preprocess(network, Preprocess(["cat", "dog", "cow"], 5, "zero"))


@pytest.mark.parametrize("shape", [(6, 5, 3), (4, 5, 2), (6, 5)])
def test_images_of_another_shape(model, shape):
    """Keras looks first, this layer at what Keras lets through."""
    for call in (model, model.get_layer("preprocess")):
        with pytest.raises(ValueError, match=r"(?i)(expected|of the) shape.*6, 5, 2\)"):
            call(np.zeros((3, *shape), "uint8"))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its graphs")
def test_shapes_that_a_graph_does_not_know(model):
    """Keras makes such graphs after images of several shapes."""
    import tensorflow as tf

    layer = model.get_layer("preprocess")
    spec = tf.TensorSpec((None, None, None, None), "uint8")
    traced = tf.function(layer, input_signature=[spec])
    assert traced.get_concrete_function().output_shapes == (None, 6, 5, 2)
    np.testing.assert_allclose(traced(BYTES), UNIT, rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible with exp"):
        traced(np.zeros((3, 4, 5, 2), "uint8"))
    data = tf.data.Dataset.from_tensor_slices(BYTES).batch(3).map(layer)
    np.testing.assert_allclose(next(data.as_numpy_iterator()), UNIT, rtol=1e-6)


def test_in_front_of_any_network():
    layers = [keras.Input((6, 5, 2)), keras.layers.Flatten(), keras.layers.Dense(3)]
    plain = keras.Sequential(layers)
    known = with_preprocess(plain, Preprocess(["cat"]))
    np.testing.assert_allclose(known(BYTES), plain(UNIT), rtol=1e-4, atol=1e-6)
    dog = Preprocess(["dog"])
    with_preprocess(
        keras.Sequential([keras.Input((2, 1)), keras.layers.Flatten()]), dog
    )
    again = with_preprocess(known, dog)
    np.testing.assert_allclose(again(BYTES), plain(UNIT), rtol=1e-4, atol=1e-6)
    names = [x.class_names for x in again.layers if isinstance(x, Preprocess)]
    assert names == [("dog",)]
    for other in (known, again):
        assert [id(w) for w in other.weights] == [id(w) for w in plain.weights]
