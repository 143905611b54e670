"""Several devices, and several processes, train as one device does."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.training import Recipe, _devices, fit, on_devices

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the processes choose the backend"
)
IMAGES, LABELS = rescaled_arrays("digits", "train", canvas=24, limit=13)


def start(backend: str, kind: str, file: Path, *arguments: str) -> subprocess.Popen:
    module = "tests.training._distribution"
    command = [sys.executable, "-m", module, kind, str(file), *arguments]
    flags = os.environ["XLA_FLAGS"]  # of conftest.py, to compile quickly
    if kind == "devices":
        flags += " --xla_force_host_platform_device_count=2"
    # With oneDNN, TensorFlow 2.21 crashes on convolutions on several logical CPUs.
    own = {"KERAS_BACKEND": backend, "XLA_FLAGS": flags, "TF_ENABLE_ONEDNN_OPTS": "0"}
    return subprocess.Popen(
        command,
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


@pytest.fixture(scope="module")
def on_two_devices(tmp_path_factory) -> dict[str, dict]:
    folder, backends = tmp_path_factory.mktemp("devices"), ("tensorflow", "jax")
    files = {folder / f"{name}.json": name for name in backends}
    processes = {file: start(name, "devices", file) for file, name in files.items()}
    return dict(zip(backends, finished(processes), strict=True))


@pytest.fixture(scope="module")
def as_two_processes(tmp_path_factory) -> list[dict]:
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    files = [folder / f"{number}.json" for number in range(2)]
    found = finished(
        {
            file: start("jax", "process", file, address, str(number))
            for number, file in enumerate(files)
        }
    )
    names = {path.name for path in folder.rglob("*")}
    assert names == {
        *("0.json", "1.json", "0"),  # only the first process has a folder of the run
        *("settings.json", "log.csv", "epoch-0002.weights.h5"),
    }
    return found


def assert_same_training(found: dict, expected: dict):
    """The same losses and weights, but for the rounding of float32.

    Where a gradient is small, AdamW turns its rounding into steps of some 1e-5.
    """
    for name, values in expected["history"].items():
        np.testing.assert_allclose(found["history"][name], values, rtol=1e-5)
    for weight, other in zip(found["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(weight, other, atol=3e-5)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_two_devices_train_as_one(on_two_devices, backend):
    """Interrupted, and with batches that cannot be shared out."""
    found = on_two_devices[backend]
    assert (found["one"]["devices"], found["all"]["devices"]) == (1, 2)
    assert_same_training(found["all"], found["one"])
    assert len(found["one"]["history"]["val_loss"]) == 2


@pytest.mark.slow
def test_two_processes_train_as_one(on_two_devices, as_two_processes):
    for process in as_two_processes:
        assert process["all"]["devices"] == 2
        assert_same_training(process["all"], on_two_devices["jax"]["one"])


@pytest.mark.slow
def test_check_above_can_fail(on_two_devices):
    with pytest.raises(AssertionError):
        assert_same_training(
            on_two_devices["tensorflow"]["all"], on_two_devices["jax"]["one"]
        )


@pytest.mark.slow
def test_devices_draw_numbers_of_their_own(on_two_devices):
    alone, first, second = on_two_devices["tensorflow"]["draws"]
    assert first == alone
    assert not set(first) & set(second)


@pytest.mark.slow
def test_on_jax_dropout_is_that_of_one_device(on_two_devices):
    found = on_two_devices["jax"]
    assert_same_training(found["dropout all"], found["dropout 1"])


@pytest.mark.slow
def test_saved_networks_do_not_tell_how_they_were_trained(on_two_devices):
    for found in on_two_devices.values():
        assert found["all"]["synchronized"] == [False]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("built elsewhere", "`model` must be built for the devices that train it"),
        ("batch of 1", "`recipe.batch_size` and the number of images must be at"),
    ],
)
def test_unfit_arguments_on_two_devices(on_two_devices, backend, case, message):
    assert on_two_devices[backend][case].startswith(f"ValueError: {message}")


@pytest.mark.slow
def test_unfit_arguments_of_processes(as_two_processes):
    first, second = as_two_processes
    assert "2 processes" in first["no scope"]
    assert "seed: 0, now 1" in first["another run"]
    assert second["another run"].startswith("RuntimeError: The first process")


def small_network() -> keras.Model:
    image = keras.Input((24, 24, 1))
    return keras.Sequential([image, keras.layers.Flatten(), keras.layers.Dense(10)])


def test_tensorflow_would_not_distribute():
    try:
        distribution = keras.distribution.DataParallel(devices=["cpu:0"])
    except AttributeError:
        pytest.skip("this version of Keras refuses it on TensorFlow")
    message = r"under `on_devices\(…\)`.*Received: .*DataParallel.* on tensorflow"
    with distribution.scope(), pytest.raises(ValueError, match=message):
        fit(small_network(), Recipe(1, 13), (IMAGES, LABELS))


def test_other_strategies():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope(), pytest.raises(ValueError, match=r"Received: OneDevice"):
        fit(small_network(), Recipe(1, 13), (IMAGES, LABELS))


@pytest.mark.parametrize("count", [0, -1, 1.5, 2, "some", None])
def test_unfit_numbers_of_devices(count):
    message = rf"`count` must be 'all' or a number from 1 to 1,.*count={count!r}"
    with pytest.raises(ValueError, match=message):
        on_devices(count)


def test_other_backends(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with on_devices(1):
        pass
    with pytest.raises(ValueError, match=r"on the TensorFlow and JAX backends.*torch"):
        on_devices("all")


def test_several_devices_on_torch_are_refused(monkeypatch):
    model = small_network()
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    assert _devices.replicas(model) == 1
    monkeypatch.setattr(keras.distribution, "distribution", lambda: "DataParallel")
    with pytest.raises(ValueError, match=r"Received: DataParallel on torch"):
        _devices.replicas(model)


def test_every_batch_normalization_is_synchronized():
    model = gauss_der_resnet((12, 12, 1), 10, (4, 6), 1.4, sigma0=(0.5, 0.7))
    means = [v for v in model.non_trainable_variables if v.name == "moving_mean"]

    def synchronized() -> list[bool]:
        parts = model._flatten_layers()
        kind = keras.layers.BatchNormalization
        return [part.synchronized for part in parts if isinstance(part, kind)]

    with _devices.synchronized(model, 2):
        assert synchronized() == [True] * len(means)
    assert synchronized() == [False] * len(means)
    with _devices.synchronized(model, 1):
        assert not any(synchronized())
