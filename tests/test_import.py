"""The package on a machine without TensorFlow and matplotlib, and its modules."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import keras_gdrn

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import sys
from tests import without

without.block(*without.TENSORFLOW, "matplotlib")
import keras
import numpy as np
import keras_gdrn

assert "keras_gdrn.training" not in sys.modules  # what is not asked for
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.visualization import activation_maps, basis_kernels, effective_filters

assert keras.backend.backend() == "jax"
model = gauss_der_resnet((8, 8, 1), 3, [4], 1.2, [0.5, 1.0], scale_dropout=0.2)
x = np.random.default_rng(0).normal(size=(4, 8, 8, 1)).astype("float32")
assert model(x).shape == (4, 3)
before = model.get_weights()
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
assert np.isfinite(model.train_on_batch(x, np.arange(4) % 3))
assert any(np.any(a != b) for a, b in zip(before, model.get_weights()))
assert activation_maps(model, x, [0, 1, 2, 0], [1.0]).shape == (4, 1, 8, 8)
channel = model.get_layer("scale_channels").network
assert effective_filters(channel.get_layer("head")).ndim == 4
assert len(basis_kernels(1.0)) == 6
assert not {"tensorflow", "keras_tuner", "matplotlib"} & sys.modules.keys()
"""


def test_works_on_jax_without_tensorflow_and_matplotlib():
    pytest.importorskip("jax")
    environment = os.environ | {"KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)


def test_every_module_is_reachable_from_the_package():
    folder = ROOT / "keras_gdrn"
    parts = [path for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"]
    public = {path.stem for path in parts if not path.name.startswith("_")}
    assert set(keras_gdrn.__all__) == public
    assert public <= set(dir(keras_gdrn))
    for name in public:
        assert getattr(keras_gdrn, name).__name__ == f"keras_gdrn.{name}"
    with pytest.raises(AttributeError, match="no attribute 'layer'"):
        keras_gdrn.layer  # noqa: B018
