"""Docstrings: entries are sentences, as in Keras, and say all of public functions."""

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
FOLDERS = ("keras_gdrn", "examples", "tuning", "benchmarks")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
DOCUMENTED = ast.FunctionDef | ast.ClassDef | ast.Module
TITLES = "Args|Attributes|Returns|Yields|Raises"
SECTION = re.compile(rf"^({TITLES}):\n((?: {{4}}.*\n|\n)+)", re.MULTILINE)
# The names that an entry begins with, such as `*callbacks, verbose`.
NAMES = re.compile(r"^[*\w.]+(?:, [*\w.]+)*: ")


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED):
            yield ast.get_docstring(node) or ""


def entries(docstring: str) -> Iterator[str]:
    """What is said of each argument and each error, and of what is returned."""
    for title, body in SECTION.findall(f"{docstring}\n"):
        text = textwrap.dedent(body).strip()
        if title in ("Returns", "Yields"):
            yield text
            continue
        for entry in re.split(r"\n(?=\S)", text):
            assert NAMES.match(entry), f"no name of an entry: {entry}"
            yield NAMES.sub("", entry)


def is_sentence(entry: str) -> bool:
    """Whether it begins with a capital letter, or with code, and ends with a period."""
    return not entry[0].islower() and entry.endswith((".", ".)"))


def test_entries_are_sentences():
    found = [(p, e) for p in FILES for t in docstrings(p) for e in entries(t)]
    assert len(found) > 500
    assert [entry for entry in found if not is_sentence(entry[1])] == []


INHERITED = {"name", "dtype", "kwargs"}


@pytest.mark.parametrize("module", sorted(keras_gdrn.__all__))
def test_public_names_are_described(module):
    """Functions with all arguments and what they return; classes at all."""
    module = importlib.import_module(f"keras_gdrn.{module}")
    for name in module.__all__:
        value = getattr(module, name)
        if not callable(value):
            continue
        text = f"{inspect.getdoc(value)}\n"
        assert value.__doc__, name
        if inspect.isclass(value):
            continue
        sections = dict(SECTION.findall(text))
        described = re.findall(r"^ {4}([*\w, ]+): ", sections.get("Args", ""), re.M)
        names = set(re.findall(r"\w+", " ".join(described)))
        signature = inspect.signature(value)
        assert {*signature.parameters} - INHERITED <= names, name
        assert signature.return_annotation is None or "Returns" in sections, name
