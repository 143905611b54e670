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


def test_links_to_files_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in link and not link.startswith("#"):
                assert (page.parent / link.partition("#")[0]).exists(), (page, link)


def test_commands_name_no_folder_of_data():
    """Without one it is that of TensorFlow Datasets, which everybody has."""
    for path in (*PAGES, *ROOT.glob("results/**/*.json")):
        assert "--data-dir" not in path.read_text(encoding="utf-8"), path


def test_the_pictures_can_be_drawn(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import pictures

    monkeypatch.setattr(pictures, "OUT", tmp_path)
    pictures.main()
    committed = {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    assert {path.name for path in tmp_path.iterdir()} == committed
