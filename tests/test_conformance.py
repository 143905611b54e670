"""Checks that others wrote: Keras' of its own layers, KerasHub's kind, JAX's, ONNX's.

The one file that imports private parts of Keras.
"""

import keras
import numpy as np
import pytest
from keras.src.testing import TestCase

from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    ScalePooling,
    SpatialSelection,
)
from keras_gdrn.models import from_preset, gauss_der_resnet, scale_channel
from tests._cases import cases

BACKEND = keras.backend.backend()
IMAGES = (2, 9, 8, 3)
CHANNEL = {"input_shape": IMAGES[1:], "classes": 4, "widths": [3, 4], "ratio": 1.3}
# Class, arguments, shapes of input and output, numbers of weights, of generators.
LAYERS = [
    (GaussDerConv, {"filters": 4, "sigma": 1.5}, IMAGES, (2, 9, 8, 4), 2, 0, 0),
    (
        GaussDerConv,
        {"filters": 4, "sigma": 1.0, "separable": True, "trainable_sigma": True},
        IMAGES,
        (2, 9, 8, 4),
        5,
        0,
        0,
    ),
    (
        GaussDerResidualBlock,
        {"filters": 4, "sigma": 1.2},
        IMAGES,
        (2, 9, 8, 4),
        12,
        6,
        0,
    ),
    (SpatialSelection, {"mode": "max"}, IMAGES, (2, 3), 0, 0, 0),
    (ScalePooling, {"mode": "logsumexp"}, (2, 5, 3), (2, 3), 0, 0, 0),
    (ScalePooling, {"dropout": 0.2}, (2, 5, 3), (2, 3), 0, 0, 1),
    (ScaleChannels, {"sigma0": [0.7, 1.0]}, IMAGES, (2, 2, 4), 18, 8, 0),
]


class Conformance(TestCase):
    __test__ = False


# Of what Keras' check does: it trains on a generator, and layers without weights.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.shuffle=True. was passed:UserWarning"),
    pytest.mark.filterwarnings("ignore:The model does not have any trainable"),
    pytest.mark.filterwarnings("ignore:In the future .np.object.:FutureWarning"),
]


@pytest.mark.parametrize(
    ("layer", "given", "entering", "leaving", "trained", "kept", "generators"), LAYERS
)
def test_layers_are_as_keras_wants_its_own(
    layer, given, entering, leaving, trained, kept, generators
):
    if layer is ScaleChannels:
        given = {**given, "network": scale_channel(**CHANNEL)}
    Conformance().run_layer_test(
        layer,
        init_kwargs=given,
        input_shape=entering,
        expected_output_shape=leaving,
        expected_num_trainable_weights=trained,
        expected_num_non_trainable_weights=kept,
        expected_num_seed_generators=generators,
        expected_num_losses=0,
        supports_masking=False,
    )


@pytest.mark.parametrize("selection", cases(["center", "max"], ["max"]))
def test_models_are_as_keras_hub_wants_backbones(tmp_path, selection):
    """Calls, configuration, files, policies and layers of one's own names."""
    given = {**CHANNEL, "sigma0": [0.7, 1.0], "spatial_selection": selection}
    model = gauss_der_resnet(**given)
    images = np.random.default_rng(0).random(IMAGES, dtype="float32")
    scores = np.asarray(model(images))
    assert scores.shape == (2, 4)
    np.testing.assert_allclose(model.predict(images, verbose=0), scores, atol=1e-5)
    assert len({layer.name for layer in model.layers}) == len(model.layers)
    again = type(model).from_config(model.get_config())
    assert again.get_config() == model.get_config()
    for name in ("model.keras", "model.weights.h5"):
        path = tmp_path / name
        if name.endswith(".keras"):
            model.save(path)
            again = keras.saving.load_model(path)
        else:
            model.save_weights(path)
            again.load_weights(path)
        np.testing.assert_allclose(np.asarray(again(images)), scores, atol=1e-6)
    policies = ("float32", "mixed_bfloat16", "mixed_float16", "bfloat16")
    for policy in cases(policies, ["mixed_bfloat16"]):
        keras.config.set_dtype_policy(policy)
        try:
            mixed = gauss_der_resnet(**given)
        finally:
            keras.config.set_dtype_policy("float32")
        inner = mixed.get_layer("scale_channels")
        assert inner.dtype_policy.name == policy
        assert keras.backend.standardize_dtype(mixed(images).dtype) == "float32"


def test_presets_are_as_keras_hub_wants_them(tmp_path):
    model = from_preset("digits", sigma0=[1.0])
    images = np.zeros((1, 40, 40, 1))
    model.save(tmp_path / "model.keras")
    again = from_preset(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(again(images)), np.asarray(model(images)))
    with pytest.raises(ValueError, match="preset='digit'"):
        from_preset("digit")


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("sigma", [1.5, 6.0])
def test_gradients_by_jax(sigma):
    from jax.test_util import check_grads

    layer = GaussDerConv(3, sigma, activation="tanh")
    images = np.random.default_rng(0).normal(size=(1, 9, 20, 2)).astype("float32")
    layer.build(images.shape)
    check_grads(layer, (images,), order=1, modes=["fwd", "rev"], atol=0.02, rtol=0.02)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="exported there")
def test_an_onnx_file_by_its_checker(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("tf2onnx")
    model = gauss_der_resnet(**CHANNEL, sigma0=[0.7, 1.0])
    model(np.zeros(IMAGES, "float32"))
    model.export(str(tmp_path / "model.onnx"), format="onnx", verbose=False)
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
