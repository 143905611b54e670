"""Several devices train as one does."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.training import Recipe, _devices, fit, on_devices

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the processes choose the backend"
)


def start(backend: str, file: Path) -> subprocess.Popen:
    flags = os.environ["XLA_FLAGS"]  # of conftest.py, to compile quickly
    flags += " --xla_force_host_platform_device_count=2"
    # With oneDNN, TensorFlow 2.21 crashes on convolutions on several logical CPUs.
    own = {"KERAS_BACKEND": backend, "XLA_FLAGS": flags, "TF_ENABLE_ONEDNN_OPTS": "0"}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.training._distribution", str(file)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(processes: dict[Path, subprocess.Popen]) -> list[dict]:
    """What the processes found; when one fails, the others need not wait for it."""
    try:
        for process in processes.values():
            output, _ = process.communicate(timeout=600)
            assert process.returncode == 0, output
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()
    return [json.loads(file.read_text(encoding="utf-8")) for file in processes]


BACKENDS = ["tensorflow", *filter(importlib.util.find_spec, ("jax", "torch"))]


@pytest.fixture(scope="module")
def on_two_devices(tmp_path_factory) -> dict[str, dict]:
    folder, backends = tmp_path_factory.mktemp("devices"), BACKENDS
    files = {folder / f"{name}.json": name for name in backends}
    processes = {file: start(name, file) for file, name in files.items()}
    return dict(zip(backends, finished(processes), strict=True))


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
    if devices == 1:
        return
    assert found["all"]["synchronized"] == [False]  # in a saved network
    assert "`model` that was built under" in found["built elsewhere"]
    assert "`recipe.batch_size` and the number of images" in found["batch of 1"]


@pytest.mark.slow
def test_check_above_can_fail(on_two_devices):
    with pytest.raises(AssertionError):
        assert_same_training(
            on_two_devices["tensorflow"]["all"], on_two_devices["jax"]["one"]
        )


def small_network() -> keras.Model:
    image = keras.Input((24, 24, 1))
    return keras.Sequential([image, keras.layers.Flatten(), keras.layers.Dense(10)])


def test_what_would_not_distribute():
    arrays = rescaled_arrays("digits", "train", canvas=24, limit=13)
    scopes = {"OneDeviceStrategy": tf.distribute.OneDeviceStrategy("CPU:0").scope()}
    try:
        parallel = keras.distribution.DataParallel(devices=["cpu:0"])
        scopes[".*DataParallel.*"] = parallel.scope()
    except AttributeError:
        pass  # this version of Keras refuses it on TensorFlow
    for name, scope in scopes.items():
        message = rf"under `on_devices\(…\)`.*Received: .*{name} on tensorflow"
        with scope, pytest.raises(ValueError, match=message):
            fit(small_network(), Recipe(1, 13), arrays)


@pytest.mark.parametrize("count", [0, -1, 1.5, 2, "some", None])
def test_unfit_numbers_of_devices(count):
    message = rf"`count` must be 'all' or that of .*'cpu:0'.*count={count!r}"
    with pytest.raises(ValueError, match=message):
        on_devices(count)


def test_several_devices_on_torch_are_refused(monkeypatch):
    model = small_network()
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
