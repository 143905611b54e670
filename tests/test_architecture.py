"""Who imports whom is what CONTRIBUTING.md draws, and what need not be installed."""

import ast
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keras_gdrn

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "keras_gdrn"
# What every room may use, and what is no room.
COMMON = {"_checks", "commands"}
FRAMEWORKS = {"keras", "tensorflow", "jax", "torch"}


def imported(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            modules |= set(names) if node.module == "keras_gdrn" else {node.module}
    return modules


def rooms_left_of() -> dict[str, set[str]]:
    """For each room those to its left in the drawing."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawing = text.split("```text\n")[1].split("```")[0].splitlines()
    places = [
        (m.start(), m[0]) for line in drawing for m in re.finditer(r"[a-z]+", line)
    ]
    left = {room: {r for at, r in places if at < place} for place, room in places}
    return left | {"data": set()}  # on a line of its own


ROOMS = rooms_left_of()


def test_the_drawing_has_each_room():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(ROOMS)
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert files == COMMON


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_is_to_its_left(room):
    for path in (PACKAGE / room).rglob("*.py"):
        parts = (module.split(".") for module in imported(path))
        found = {part[1] for part in parts if part[0] == "keras_gdrn" and part[1:]}
        assert found <= ROOMS[room] | COMMON | {room}, path


def test_kernels_and_common_files_know_no_framework():
    for path in (*(PACKAGE / "kernels").rglob("*.py"), PACKAGE / "commands.py"):
        assert not {module.split(".")[0] for module in imported(path)} & FRAMEWORKS


def test_an_example_stands_on_its_own():
    others = {file.stem for file in (ROOT / "examples").rglob("*.py")}
    for path in (ROOT / "examples").glob("*.py"):
        names = {module.split(".")[0] for module in imported(path)}
        assert not names & others, path


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
    modules = [module.name for module in pkgutil.iter_modules(keras_gdrn.__path__)]
    public = {name for name in modules if not name.startswith("_")}
    assert set(keras_gdrn.__all__) == public
    assert public <= set(dir(keras_gdrn))
    for name in public:
        assert getattr(keras_gdrn, name).__name__ == f"keras_gdrn.{name}"
    with pytest.raises(AttributeError, match="no attribute 'layer'"):
        keras_gdrn.layer  # noqa: B018
