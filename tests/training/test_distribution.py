"""Several devices train as one does."""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.training import _devices, fit, on_devices
from tests._commands import ROOT
from tests.training._small import ARRAYS, RECIPE, network

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the processes choose the backend"
)
BACKENDS = ["tensorflow", *filter(importlib.util.find_spec, ("jax", "torch"))]


def found_on(backend: str, folder: Path) -> dict:
    """What a process on two devices finds."""
    file, flags = folder / f"{backend}.json", os.environ["XLA_FLAGS"]  # of conftest.py
    flags += " --xla_force_host_platform_device_count=2"
    # With oneDNN, TensorFlow 2.21 crashes on convolutions on several logical CPUs.
    own = {"KERAS_BACKEND": backend, "XLA_FLAGS": flags, "TF_ENABLE_ONEDNN_OPTS": "0"}
    program = [sys.executable, "-m", "tests.training._distribution", file]
    options = {"capture_output": True, "text": True, "timeout": 600, "cwd": ROOT}
    done = subprocess.run(program, env={**os.environ, **own}, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def on_two_devices(tmp_path_factory) -> dict[str, dict]:
    folder = tmp_path_factory.mktemp("devices")
    with ThreadPoolExecutor() as pool:
        found = pool.map(found_on, BACKENDS, itertools.repeat(folder))
        return dict(zip(BACKENDS, found, strict=True))


def assert_same_training(found: dict, expected: dict):
    """The same losses and weights, but for the rounding of float32.

    Where a gradient is small, AdamW turns its rounding into steps of some 1e-5.
    """
    for name, values in expected["history"].items():
        np.testing.assert_allclose(found["history"][name], values, rtol=1e-5)
    for weight, other in zip(found["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(weight, other, atol=3e-5)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_devices_train_as_one(on_two_devices, backend):
    """Interrupted, and with batches that cannot be shared out.

    PyTorch has one device here. But for TensorFlow, backends do without that.
    """
    found = on_two_devices[backend]
    devices = 1 if backend == "torch" else 2
    assert (found["one"]["devices"], found["all"]["devices"]) == (1, devices)
    assert_same_training(found["all"], found["one"])
    assert len(found["one"]["history"]["val_loss"]) == 2
    if devices == 2:
        assert "`model` that was built under" in found["built elsewhere"]


@pytest.mark.slow
def test_check_above_can_fail(on_two_devices):
    with pytest.raises(AssertionError):
        assert_same_training(
            on_two_devices["tensorflow"]["all"], on_two_devices["jax"]["one"]
        )


def test_what_would_not_distribute():
    scopes = {"OneDeviceStrategy": tf.distribute.OneDeviceStrategy("CPU:0").scope()}
    try:
        parallel = keras.distribution.DataParallel(devices=["cpu:0"])
        scopes[".*DataParallel.*"] = parallel.scope()
    except AttributeError:
        pass  # this version of Keras refuses it on TensorFlow
    for name, scope in scopes.items():
        message = rf"under `on_devices\(…\)`.*Received: .*{name} on tensorflow"
        with scope, pytest.raises(ValueError, match=message):
            fit(network(), RECIPE, ARRAYS)


@pytest.mark.parametrize("count", [0, -1, 1.5, 2, "some", None])
def test_unfit_numbers_of_devices(count):
    message = rf"`count` must be 'all' or that of .*'cpu:0'.*count={count!r}"
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
