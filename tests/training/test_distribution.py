"""Several devices train as one does."""

import importlib.util
import os
import subprocess
import sys

import keras
import pytest
import tensorflow as tf

from keras_gdrn.training import _devices, fit, on_devices
from tests._commands import ROOT
from tests.training._small import ARRAYS, RECIPE, network

BACKENDS = ["tensorflow", *filter(importlib.util.find_spec, ("jax", "torch"))]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_devices_train_as_one(backend, tmp_path):
    """Interrupted, and with batches that cannot be shared out.

    PyTorch has one device here. But for TensorFlow, backends do without that.
    """
    flags = os.environ["XLA_FLAGS"]  # of conftest.py, to compile quickly
    flags += " --xla_force_host_platform_device_count=2"
    # With oneDNN, TensorFlow 2.21 crashes on convolutions on several logical CPUs.
    own = {"KERAS_BACKEND": backend, "XLA_FLAGS": flags, "TF_ENABLE_ONEDNN_OPTS": "0"}
    program = [sys.executable, "-m", "tests.training._distribution", tmp_path / "run"]
    options = {"capture_output": True, "text": True, "timeout": 600, "cwd": ROOT}
    done = subprocess.run(program, env={**os.environ, **own}, **options)
    assert done.returncode == 0, done.stderr


def test_what_would_not_distribute():
    scope = tf.distribute.OneDeviceStrategy("CPU:0").scope()
    message = r"under `on_devices\(…\)`.*Received: .*OneDeviceStrategy on tensorflow"
    with scope, pytest.raises(ValueError, match=message):
        fit(network(), RECIPE, ARRAYS)


@pytest.mark.parametrize("count", [0, 1.5, 2, "some"])
def test_unfit_numbers_of_devices(count):
    message = rf"`count` must be 'all' or a number of .*'cpu:0'.*count={count!r}"
    with pytest.raises(ValueError, match=message):
        on_devices(count)


def test_several_devices_on_torch_are_refused(monkeypatch):
    model = network()
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with on_devices(1):
        assert _devices.replicas(model) == 1
    with pytest.raises(ValueError, match=r"the backend TensorFlow or JAX.*torch"):
        on_devices("all")
    monkeypatch.setattr(keras.distribution, "distribution", lambda: "DataParallel")
    with pytest.raises(ValueError, match=r"DataParallel on torch"):
        _devices.replicas(model)


def test_every_batch_normalization_is_synchronized():
    kind = keras.layers.BatchNormalization
    inner = keras.Sequential([keras.Input((4,)), kind(), kind(synchronized=True)])
    model = keras.Sequential([keras.Input((4,)), inner, keras.layers.Dense(2)])
    for devices, within in ((2, [True, True]), (1, [False, True])):
        with _devices.synchronized(model, devices):
            assert [layer.synchronized for layer in inner.layers] == within
        assert [layer.synchronized for layer in inner.layers] == [False, True]
