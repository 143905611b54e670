"""Training where TensorFlow is not installed, and that it is the same training."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.training import Augmentation, Recipe, _batches, fit

ROOT = Path(__file__).resolve().parents[2]
IMAGES, LABELS = rescaled_arrays("digits", "train", canvas=12, limit=40)
RECIPE = Recipe(2, 16, augmentation=Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3))


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


@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow", reason="TensorFlow is there"
)
def test_training_is_the_same(monkeypatch):
    """Keras looks at a batch before the first epoch: of no influence."""
    models = []
    for has_tensorflow in (True, False):
        monkeypatch.setattr(_batches, "has_tensorflow", lambda it=has_tensorflow: it)
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Flatten(), keras.layers.Dense(10)]
        models.append(keras.Sequential([keras.Input((12, 12, 1)), *layers]))
        fit(models[-1], RECIPE, (IMAGES, LABELS), verbose=0)
    expected, found = (model.get_weights() for model in models)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
