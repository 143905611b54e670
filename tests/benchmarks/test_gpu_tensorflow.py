"""The measurement of TensorFlow on a GPU, on a small network and whatever device."""

import dataclasses
import sys

import keras
import pytest

from keras_gdrn.models import ARCHITECTURES
from tests._commands import cells

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its steps"),
]


def test_the_gpu_is_named(gpu, monkeypatch):
    module = gpu("on_tensorflow")
    assert module.device() == "no GPU"
    config, details = module.tf.config, {"device_name": "Tesla T4"}
    monkeypatch.setattr(config, "list_physical_devices", lambda kind: ["/GPU:0"])
    monkeypatch.setattr(config.experimental, "get_device_details", lambda _: details)
    assert module.device() == "Tesla T4"


def test_errors_and_ratios_are_printed(gpu, monkeypatch, capsys):
    module = gpu("on_tensorflow")
    small = {"input_shape": (12, 12, 1), "widths": (4,), "sigma0": (0.7, 1.0)}
    tiny = dataclasses.replace(ARCHITECTURES["digits"], **small)
    monkeypatch.setitem(module.contenders.PRESETS, "digits", tiny)
    command = "x --preset digits --batch 2 --repeats 1 --only float32 bfloat16"
    monkeypatch.setattr(sys, "argv", command.split())
    try:
        module.main()
    finally:
        module.set_precision("TF32")  # Keras' and TensorFlow's own setting
    _, _, exact, rounded = cells(capsys.readouterr().out)
    assert exact[0] == "float32" and float(exact[1]) < 1e-5
    assert 1e-4 < float(rounded[1]) < 0.1
    assert min(float(row[k].split()[0]) for row in (exact, rounded) for k in (2, 3)) > 0
