"""Images as they come: 0 to 255 and 0 to 1 are the same, and others are not taken."""

import keras
import numpy as np
import pytest

from keras_gdrn.models import Preprocess, gauss_der_resnet, with_preprocess
from tests.layers._contract import randomize


def images(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype("uint8")


BYTES = images(3, 6, 5, 2)
UNIT = (BYTES / 255).astype("float32")


def given(values):
    return keras.ops.convert_to_numpy(Preprocess()(values))


@pytest.mark.parametrize(
    "values", [BYTES, BYTES.astype("float32"), BYTES.astype("int32"), UNIT]
)
def test_both_ranges_are_one(values):
    np.testing.assert_allclose(given(values), UNIT, rtol=1e-6)


def test_values_of_0_to_1_are_not_changed_at_all():
    np.testing.assert_array_equal(given(UNIT), UNIT)
    overshoot = np.array([[[[-0.2]], [[1.4]]]], "float32")
    np.testing.assert_array_equal(given(overshoot), overshoot)


def test_each_image_is_looked_at_alone():
    """An answer must not depend on the other images of the batch."""
    mixed = np.concatenate([BYTES[:1].astype("float32"), UNIT[1:]])
    np.testing.assert_allclose(given(mixed), UNIT, rtol=1e-6)


@pytest.mark.parametrize("value", [2, 7])
def test_dark_images_of_bytes(value):
    dark = np.full((1, 4, 4, 1), value, "uint8")
    np.testing.assert_allclose(given(dark), value / 255, rtol=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        2 * UNIT - 1,
        (UNIT - 0.5) / 0.29,  # standardized
        (UNIT - 0.13) / 0.31,  # as MNIST usually is
        257.0 * BYTES,  # 16 bits
        BYTES - 120.0,
        np.where(UNIT > 0.9, np.nan, UNIT),
    ],
)
def test_other_ranges_have_no_answer(values):
    assert np.isnan(given(values)).all()


def network(shape=(6, 5, 2)):
    known = Preprocess(["cat", "dog", "cow"], 5, "zero")
    model = gauss_der_resnet(shape, 3, [4], 1.2, [1.0], order=1)
    randomize(model)
    return with_preprocess(model, known)


def test_saved_with_the_network(tmp_path):
    model = network()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for x in (BYTES, UNIT):
        np.testing.assert_allclose(loaded(x), model(UNIT), rtol=1e-5)
    layer = loaded.get_layer("preprocess")
    assert layer.class_names == ("cat", "dog", "cow")
    assert (layer.object_size, layer.extension) == (5, "zero")
    assert layer.dtype_policy.name == "float32"


@pytest.mark.parametrize("shape", [(6, 5, 3), (4, 5, 2), (6, 5)])
def test_images_of_another_shape(shape):
    """Keras looks first, this layer at what Keras lets through."""
    model = network()
    for call in (model, model.get_layer("preprocess")):
        with pytest.raises(ValueError, match=r"(?i)(expected|of the) shape.*6, 5, 2\)"):
            call(images(3, *shape))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its graphs")
def test_shapes_that_a_graph_does_not_know():
    """Keras makes such graphs after images of several shapes."""
    import tensorflow as tf

    layer = network().get_layer("preprocess")
    spec = tf.TensorSpec((None, None, None, None), "uint8")
    traced = tf.function(layer, input_signature=[spec])
    assert traced.get_concrete_function().output_shapes == (None, 6, 5, 2)
    np.testing.assert_allclose(traced(BYTES), UNIT, rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible with exp"):
        traced(images(3, 4, 5, 2))
    data = tf.data.Dataset.from_tensor_slices(BYTES).batch(3).map(layer)
    np.testing.assert_allclose(next(data.as_numpy_iterator()), UNIT, rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"class_names": "cat"},
        {"class_names": 1},
        {"object_size": 0},
        {"extension": 1},
    ],
)
def test_refused(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=rf"`{name}` must.*{name}={value!r}"):
        Preprocess(**options)


def test_in_front_of_any_network():
    plain = keras.Sequential([keras.Input((6, 5, 2)), keras.layers.Flatten()])
    for model in (gauss_der_resnet((6, 5, 2), 3, [4], 1.2, [1.0]), plain):
        known = with_preprocess(model, Preprocess(["cat"]))
        assert [id(w) for w in known.weights] == [id(w) for w in model.weights]
        np.testing.assert_allclose(known(BYTES), model(UNIT), rtol=1e-4, atol=1e-6)
        again = with_preprocess(known, Preprocess(["dog"]))
        assert [x.class_names for x in again.layers if x.name == "preprocess"] == [
            ("dog",)
        ]
