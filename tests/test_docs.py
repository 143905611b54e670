"""The documentation: no name, argument or picture is missing, no link leads nowhere."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import keras_gdrn

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")]
FOLDERS = ("keras_gdrn", "examples", "tuning", "benchmarks")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
TITLES = "Args|Attributes|Returns|Yields|Raises"
SECTION = re.compile(rf"^({TITLES}):\n((?: {{4}}.*\n|\n)+)", re.MULTILINE)
# The names that an entry begins with, such as `*callbacks, verbose`.
NAMES = re.compile(r"^[*\w.]+(?:, [*\w.]+)*: ")
INHERITED = {"name", "dtype", "kwargs"}


def entries(path: Path) -> Iterator[str]:
    """What docstrings have on each argument and error, and on what is returned."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            continue
        for title, body in SECTION.findall(f"{ast.get_docstring(node) or ''}\n"):
            text = textwrap.dedent(body).strip()
            if title in ("Returns", "Yields"):
                yield text
                continue
            for entry in re.split(r"\n(?=\S)", text):
                assert NAMES.match(entry), f"no name of an entry: {entry}"
                yield NAMES.sub("", entry)


def test_entries_of_docstrings_are_sentences():
    """They begin with a capital letter, or with code, and end with a period."""
    found = [(path, entry) for path in FILES for entry in entries(path)]
    assert len(found) > 500
    for path, entry in found:
        assert not entry[0].islower() and entry.endswith((".", ".)")), (path, entry)


@pytest.mark.parametrize("module", sorted(keras_gdrn.__all__))
def test_public_names_are_described(module):
    """Functions with all arguments and what they return; classes at all."""
    module = importlib.import_module(f"keras_gdrn.{module}")
    for name in module.__all__:
        value = getattr(module, name)
        assert not callable(value) or value.__doc__, name
        if not inspect.isfunction(value):
            continue
        sections = dict(SECTION.findall(f"{inspect.getdoc(value)}\n"))
        described = re.findall(r"^ {4}([*\w, ]+): ", sections.get("Args", ""), re.M)
        names = set(re.findall(r"\w+", " ".join(described)))
        signature = inspect.signature(value)
        assert {*signature.parameters} - INHERITED <= names, name
        assert signature.return_annotation is None or "Returns" in sections, name


@pytest.mark.parametrize("name", sorted(keras_gdrn.__all__))
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
