"""Thousands of steps and hundreds of saves: nothing grows. `make endurance`."""

import resource

import keras
import numpy as np
import pytest

from keras_gdrn.models import gauss_der_resnet

pytestmark = [
    pytest.mark.endurance,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="measured on TensorFlow"
    ),
]
ALLOWED = 30  # MiB
IMAGES = np.random.default_rng(0).random((40, 12, 12, 1), "float32")


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.fixture
def model():
    return gauss_der_resnet((12, 12, 1), 3, [3, 4], 1.3, sigma0=[0.7, 1.0, 1.4])


def test_ten_thousand_steps_do_not_grow(model):
    labels = np.arange(40) % 3
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(IMAGES, labels, 4, 100, verbose=0)  # ten steps in an epoch
    before = peak()
    history = model.fit(IMAGES, labels, 4, 1000, verbose=0).history
    assert np.isfinite(history["loss"][-1])
    assert peak() - before < ALLOWED


def test_two_hundred_saves_and_loads(model, tmp_path):
    expected = np.asarray(model(IMAGES))
    for number in range(200):
        model.save(tmp_path / "model.keras")
        keras.utils.clear_session()
        model = keras.saving.load_model(tmp_path / "model.keras")
        if number == 20:
            before = peak()
    np.testing.assert_allclose(np.asarray(model(IMAGES)), expected, rtol=1e-5)
    assert peak() - before < ALLOWED
