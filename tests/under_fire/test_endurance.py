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


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def network():
    return gauss_der_resnet((12, 12, 1), 3, [3, 4], 1.3, sigma0=[0.7, 1.0, 1.4])


def test_ten_thousand_steps_do_not_grow():
    rng = np.random.default_rng(0)
    images = rng.random((40, 12, 12, 1), "float32")
    labels = rng.integers(3, size=40)
    model = network()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)

    def train(steps: int) -> float:
        history = model.fit(images, labels, 4, steps // 10, verbose=0)
        return history.history["loss"][-1]

    train(1000)
    before = peak()
    assert np.isfinite(train(10_000))
    assert peak() - before < ALLOWED


def test_two_hundred_saves_and_loads(tmp_path):
    images = np.random.default_rng(0).random((2, 12, 12, 1), "float32")
    model = network()
    expected = np.asarray(model(images))
    for number in range(200):
        model.save(tmp_path / "model.keras")
        keras.utils.clear_session()
        model = keras.saving.load_model(tmp_path / "model.keras")
        if number == 20:
            before = peak()
    np.testing.assert_allclose(np.asarray(model(images)), expected, rtol=1e-5)
    assert peak() - before < ALLOWED
