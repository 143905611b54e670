"""The package on a machine without TensorFlow."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import keras_gdrn

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import sys
from tests import without

without.block(*without.TENSORFLOW)
import keras
import numpy as np
import keras_gdrn
from keras_gdrn.models import gauss_der_resnet

assert keras.backend.backend() == "jax"
model = gauss_der_resnet((8, 8, 1), 3, [4], 1.2, [0.5, 1.0], scale_dropout=0.2)
x = np.random.default_rng(0).normal(size=(4, 8, 8, 1)).astype("float32")
assert model(x).shape == (4, 3)
before = model.get_weights()
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
assert np.isfinite(model.train_on_batch(x, np.arange(4) % 3))
assert any(np.any(a != b) for a, b in zip(before, model.get_weights()))
assert "tensorflow" not in sys.modules
assert "keras_tuner" not in sys.modules
print(keras_gdrn.__version__)
"""


def run(program: str, backend: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )


def test_works_on_jax_without_tensorflow():
    pytest.importorskip("jax")
    done = run(PROGRAM, "jax")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_blocked_tensorflow_is_noticed():
    """The test above would fail if the package needed TensorFlow."""
    needing = PROGRAM.replace("import keras_gdrn\n", "import tensorflow\n", 1)
    done = run(needing, "jax")
    assert done.returncode != 0 and "No module named 'tensorflow'" in done.stderr


PROJECTS = {
    "keras_tuner": "keras-tuner",
    "sklearn": "scikit-learn",
    "tensorflow_datasets": "tensorflow-datasets",
}


def imported(folder: Path) -> set[str]:
    """The packages that any file in a folder imports, wherever in it."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.split(".")[0])
    return found


def test_what_is_imported_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["viz"], *extras["ray"]]
    names = {re.split(r"[\[>=<~ ]", line)[0] for line in declared}
    ours = {"keras_gdrn", *sys.stdlib_module_names}
    backends = {"jax", "torch"}
    found = {PROJECTS.get(name, name) for name in imported(ROOT / "keras_gdrn") - ours}
    assert found - backends <= names


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


def test_what_is_not_asked_for_is_not_imported():
    code = "import sys, keras_gdrn; print('keras_gdrn.training' in sys.modules)"
    assert run(code, "jax").stdout.strip() == "False"
