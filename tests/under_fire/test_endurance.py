"""Thousands of steps and hundreds of saves: nothing grows. `make endurance`."""

import resource

import keras
import numpy as np
import pytest

from tests.training._small import ARRAYS, IMAGES, gauss_der_network

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


def test_ten_thousand_steps_do_not_grow():
    model = gauss_der_network()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)

    def train(steps: int) -> float:
        history = model.fit(*ARRAYS, 4, steps // 11, verbose=0)
        return history.history["loss"][-1]

    train(1000)
    before = peak()
    assert np.isfinite(train(10_000))
    assert peak() - before < ALLOWED


def test_two_hundred_saves_and_loads(tmp_path):
    model = gauss_der_network()
    expected = np.asarray(model(IMAGES))
    for number in range(200):
        model.save(tmp_path / "model.keras")
        keras.utils.clear_session()
        model = keras.saving.load_model(tmp_path / "model.keras")
        if number == 20:
            before = peak()
    np.testing.assert_allclose(np.asarray(model(IMAGES)), expected, rtol=1e-5)
    assert peak() - before < ALLOWED
