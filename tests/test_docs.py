"""The documentation: no name, argument or picture is missing, no link leads nowhere."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import keras_gdrn

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")]
SECTION = re.compile(r"^(Args|Returns):\n((?: {4}.*\n|\n)+)", re.MULTILINE)
INHERITED = {"name", "dtype", "kwargs"}


@pytest.mark.parametrize("room", sorted(keras_gdrn.__all__))
def test_public_names_are_described(room):
    """Functions with all arguments and what they return; classes at all.

    The reference has them from their docstrings; constants have none.
    """
    module = importlib.import_module(f"keras_gdrn.{room}")
    page = (ROOT / "docs" / "api" / f"{room}.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"py:data:: (\w+)", page))
    assert documented == {n for n in module.__all__ if not callable(getattr(module, n))}
    for name in module.__all__:
        value = getattr(module, name)
        assert not callable(value) or value.__doc__, name
        if not inspect.isfunction(value):
            continue
        sections = dict(SECTION.findall(f"{inspect.getdoc(value)}\n"))
        described = re.findall(
            r"^ {4}([*\w, ]+): [^a-z]", sections.get("Args", ""), re.M
        )
        names = set(re.findall(r"\w+", " ".join(described)))
        signature = inspect.signature(value)
        assert {*signature.parameters} - INHERITED <= names, name
        assert signature.return_annotation is None or "Returns" in sections, name


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
