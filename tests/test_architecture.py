"""Who imports whom is what CONTRIBUTING.md draws."""

import ast
import pkgutil
import re
from pathlib import Path

import pytest

import keras_gdrn
from tests._commands import ROOT

PACKAGE = ROOT / "keras_gdrn"
# What every subpackage may use, and what is no subpackage.
COMMON = {"_checks", "_pixels", "commands"}
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


def allowed_imports() -> dict[str, set[str]]:
    """The subpackages to the left of each in the drawing, which it may import."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawing = text.split("```text\n")[1].split("```")[0].splitlines()
    places = [
        (m.start(), m[0]) for line in drawing for m in re.finditer(r"[a-z]+", line)
    ]
    left = {
        subpackage: {r for at, r in places if at < place}
        for place, subpackage in places
    }
    return left | {"data": set()}  # on a line of its own


SUBPACKAGES = allowed_imports()


def test_the_drawing_has_each_subpackage():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(SUBPACKAGES)
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert files == COMMON


@pytest.mark.parametrize("subpackage", SUBPACKAGES)
def test_a_subpackage_imports_what_is_to_its_left(subpackage):
    for path in (PACKAGE / subpackage).rglob("*.py"):
        parts = (module.split(".") for module in imported(path))
        found = {part[1] for part in parts if part[0] == "keras_gdrn" and part[1:]}
        assert found <= SUBPACKAGES[subpackage] | COMMON | {subpackage}, path


def test_kernels_and_common_files_know_no_framework():
    for path in (*(PACKAGE / "kernels").rglob("*.py"), PACKAGE / "commands.py"):
        assert not {module.split(".")[0] for module in imported(path)} & FRAMEWORKS


def test_an_example_stands_on_its_own():
    others = {file.stem for file in (ROOT / "examples").rglob("*.py")}
    for path in (ROOT / "examples").glob("*.py"):
        names = {module.split(".")[0] for module in imported(path)}
        assert not names & others, path


def test_every_module_is_reachable_from_the_package():
    modules = [module.name for module in pkgutil.iter_modules(keras_gdrn.__path__)]
    public = {name for name in modules if not name.startswith("_")}
    assert set(keras_gdrn.__all__) == public
    assert public <= set(dir(keras_gdrn))
    for name in public:
        assert getattr(keras_gdrn, name).__name__ == f"keras_gdrn.{name}"
    with pytest.raises(AttributeError, match="no attribute 'layer'"):
        keras_gdrn.layer  # noqa: B018
