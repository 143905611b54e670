"""The documentation: no name is missing, and no link leads nowhere."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")]
MODULES = (
    *("data", "evaluation", "layers", "models", "training", "tuning"),
    "visualization",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_reference_has_each_constant(name):
    """Functions and classes come from their docstrings; constants have none."""
    page = (ROOT / "docs" / "api" / f"{name}.md").read_text(encoding="utf-8")
    module = importlib.import_module(f"keras_gdrn.{name}")
    documented = set(re.findall(r"py:data:: (\w+)", page))
    assert documented == {n for n in module.__all__ if not callable(getattr(module, n))}


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_and_classes_have_docstrings(name):
    module = importlib.import_module(f"keras_gdrn.{name}")
    for public in module.__all__:
        found = getattr(module, public)
        assert not callable(found) or found.__doc__, public


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in link and not link.startswith("#"):
            assert (page.parent / link.partition("#")[0]).exists(), link


@pytest.mark.parametrize(
    "path", [*PAGES, *ROOT.glob("results/**/*.json")], ids=lambda p: p.name
)
def test_commands_name_no_folder_of_data(path):
    """Without one it is that of TensorFlow Datasets, which everybody has."""
    assert "--data-dir" not in path.read_text(encoding="utf-8")


def test_the_pictures_can_be_drawn(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import pictures

    monkeypatch.setattr(pictures, "OUT", tmp_path)
    pictures.main()
    committed = {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    assert {path.name for path in tmp_path.iterdir()} == committed
