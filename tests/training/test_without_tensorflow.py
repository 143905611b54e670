"""Training where TensorFlow is not installed, and that it is the same training."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.training import (
    Augmentation,
    Recipe,
    evaluation_batches,
    fit,
    training_batches,
)
from keras_gdrn.training import _batches as batches_module

ROOT = Path(__file__).resolve().parents[2]
IMAGES, LABELS = rescaled_arrays("digits", "train", canvas=12, limit=40)
WEIGHTS = np.linspace(0.5, 1.5, 40)
RECIPE = Recipe(2, 16, augmentation=Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3))


@pytest.fixture
def without_tensorflow(monkeypatch):
    monkeypatch.setattr(batches_module, "has_tensorflow", lambda: False)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_training_is_resumed_evaluated_and_shared_out(tmp_path, backend):
    pytest.importorskip(backend)
    options = {"KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)}
    flags = os.environ["XLA_FLAGS"]  # of conftest.py, to compile quickly
    options["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-m", "tests.training._without_tensorflow", str(tmp_path)],
        env=os.environ | options,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "data", [(IMAGES, LABELS), (IMAGES, LABELS, WEIGHTS)], ids=["labels", "weights"]
)
def test_each_epoch_has_the_same_batches(data, monkeypatch):
    by_tensorflow = training_batches(data, RECIPE, classes=10, seed=3)
    epochs = [list(by_tensorflow.as_numpy_iterator()) for _ in range(3)]
    monkeypatch.setattr(batches_module, "has_tensorflow", lambda: False)
    by_numpy = training_batches(data, RECIPE, classes=10, seed=3)
    for epoch in (2, 0, 1):  # in any order: a run may begin with any
        by_numpy.begin_epoch(epoch)
        assert_same_batches(list(by_numpy), epochs[epoch])
    with pytest.raises(AssertionError):
        assert_same_batches(epochs[0], epochs[1])


def test_evaluation_has_the_same_batches(monkeypatch):
    data = (IMAGES, np.eye(10)[LABELS])
    expected = list(evaluation_batches(data, 16, classes=10).as_numpy_iterator())
    monkeypatch.setattr(batches_module, "has_tensorflow", lambda: False)
    found = evaluation_batches(data, 16, classes=10)
    assert len(found) == 3
    assert_same_batches(list(found), expected)


def assert_same_batches(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow", reason="TensorFlow is there"
)
def test_training_is_the_same(monkeypatch):
    """Keras looks at a batch before the first epoch: of no influence."""
    expected, found = network(), network()
    fit(expected, RECIPE, (IMAGES, LABELS), verbose=0)
    monkeypatch.setattr(batches_module, "has_tensorflow", lambda: False)
    fit(found, RECIPE, (IMAGES, LABELS), verbose=0)
    for one, other in zip(expected.get_weights(), found.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def network():
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Flatten(), keras.layers.Dense(10)]
    return keras.Sequential([keras.Input((12, 12, 1)), *layers])


@pytest.mark.usefixtures("without_tensorflow")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((IMAGES, LABELS[:-1]), "as many labels as images"),
        ((IMAGES, LABELS, np.ones(3)), "as many weights as images"),
        ((IMAGES, LABELS.astype(str)), "number their names"),
        ((IMAGES[..., 0], LABELS), r"images \(N, H, W, C\)"),
        ((255 * IMAGES, LABELS), "divide images of 8 bits by 255"),
        ((IMAGES, LABELS + 1), r"number the 10 classes.*Received: \[.*10"),
        ((IMAGES, np.eye(10)[LABELS] / 2), "shares that add up to 1"),
        (list(zip(IMAGES, LABELS, strict=True)), "must be arrays"),
    ],
)
def test_unfit_data(data, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        list(training_batches(data, RECIPE, classes=10))
