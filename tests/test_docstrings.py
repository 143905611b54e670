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


def docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_entries_are_sentences(path):
    texts = docstrings(path.read_text(encoding="utf-8"))
    assert [e for text in texts for e in entries(text) if not is_sentence(e)] == []


def test_what_is_looked_for_is_found():
    found = list(
        entries("""One line.

Args:
    x, y: Numbers of
        two lines.
    **options: lower-case

Returns:
    `(N,)`, of
    two lines.

Raises:
    ValueError: If they differ.

Example:
""")
    )
    assert len(found) == 4
    assert [is_sentence(entry) for entry in found] == [True, False, True, True]


MODULES = sorted(keras_gdrn.__all__)
INHERITED = {"name", "dtype", "kwargs"}


def public_functions(module: str) -> dict[str, object]:
    module = importlib.import_module(f"keras_gdrn.{module}")
    named = {name: getattr(module, name) for name in module.__all__}
    return {
        name: value
        for name, value in named.items()
        if callable(value) and not inspect.isclass(value)
    }


@pytest.mark.parametrize("module", MODULES)
def test_arguments_and_results_of_public_functions_are_described(module):
    for name, function in public_functions(module).items():
        text = f"{inspect.getdoc(function)}\n"
        sections = dict(SECTION.findall(text))
        described = re.findall(r"^ {4}([*\w, ]+): ", sections.get("Args", ""), re.M)
        names = set(re.findall(r"\w+", " ".join(described)))
        assert {*inspect.signature(function).parameters} - INHERITED <= names, name
        returned = inspect.signature(function).return_annotation
        assert returned is None or "Returns" in sections, name
