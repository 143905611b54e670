"""The documentation: no name, argument or picture is missing, no link leads nowhere.

Citations of the paper name what is there, by numbers or by labels, where its source is
at hand.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import keras_gdrn
from tests._commands import ROOT
from tests._pages import page

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md")]
SECTION = re.compile(r"^(Args|Returns):\n((?: {4}.*\n|\n)+)", re.MULTILINE)
INHERITED = {"name", "dtype", "kwargs"}
SOURCE = ROOT.parent / "shared" / "paper" / "gaussderresnets.tex"
FILES = [
    path
    for folder in ("keras_gdrn", "examples", "tuning", "benchmarks", "tests", "docs")
    for pattern in ("*.py", "*.md")
    for path in sorted((ROOT / folder).rglob(pattern))
    if path != Path(__file__)
]
LABEL = r"[a-z0-9]+(?:-[a-z0-9+]+)+"
NUMBER = r"\d+(?:\.\d+)?|A\.\d"
# How labels of what is cited so begin.
BEGIN = {"Eq.": "(eq[-:])?", "Sec.": "sec-", "Table": "tab:", "Fig.": "fig-"}


@pytest.mark.parametrize("subpackage", sorted(keras_gdrn.__all__))
def test_public_names_are_described(subpackage):
    """Functions with all arguments and what they return; classes at all.

    The reference has them from their docstrings; constants have none.
    """
    module = importlib.import_module(f"keras_gdrn.{subpackage}")
    documented = set(re.findall(r"py:data:: (\w+)", page(f"docs/api/{subpackage}")))
    assert documented == {n for n in module.__all__ if not callable(getattr(module, n))}
    for name in module.__all__:
        value = getattr(module, name)
        assert not callable(value) or value.__doc__, name
        if not inspect.isfunction(value):
            continue
        sections = dict(SECTION.findall(f"{inspect.getdoc(value)}\n"))
        arguments = sections.get("Args", "")
        entries = re.findall(r"^ {4}([*\w, ]+): [^a-z]", arguments, re.M)
        names = set(re.findall(r"\w+", " ".join(entries)))
        signature = inspect.signature(value)
        assert {*signature.parameters} - INHERITED <= names, name
        assert signature.return_annotation is None or "Returns" in sections, name


def test_links_to_files_lead_somewhere():
    for file in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
            if "://" not in link and not link.startswith("#"):
                assert (file.parent / link.partition("#")[0]).exists(), (file, link)


def test_the_pictures_can_be_drawn(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import pictures

    monkeypatch.setattr(pictures, "OUT", tmp_path)
    pictures.main()
    committed = {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    assert {path.name for path in tmp_path.iterdir()} == committed


def cited(what: str) -> Iterator[tuple[str, str, str]]:
    """File, kind and number or label of each citation by such a one."""
    several = rf"(?:{what})(?:(?:,| and| to) (?:{what}))*"
    pattern = rf"\b(Eq|Sec|Table|Fig)(?:s?\.|s)? ({several})(?![\w-])"
    for path in FILES:
        text = re.sub(r"\s+(?:# )?\s*", " ", path.read_text(encoding="utf-8"))
        text = re.sub(r"(?<!Sec\. )(?=\bA\.\d\b)", "Sec. ", text)  # of the appendix
        for kind, those in re.findall(pattern, text):
            for one in re.findall(what, those):
                full = kind if kind == "Table" else f"{kind}."
                yield str(path.relative_to(ROOT)), full, one


@pytest.fixture(scope="module")
def source() -> str:
    if not SOURCE.exists():
        pytest.skip(f"{SOURCE} is not there")
    return SOURCE.read_text(encoding="utf-8")


def test_numbers_are_those_of_the_source(source):
    numbers = {f"Table {n + 1}" for n in range(source.count(r"\begin{table"))}
    main, _, appendix = source.partition(r"\appendix")
    for names, part in (("123456789", main), ("A", appendix)):
        for name, section in zip(names, part.split(r"\section{")[1:], strict=True):
            count = section.count(r"\subsection{")
            numbers |= {f"Sec. {name}", *(f"Sec. {name}.{n + 1}" for n in range(count))}
    found = {f"{kind} {one}": file for file, kind, one in cited(NUMBER)}
    assert len(found) > 10
    assert not {what: file for what, file in found.items() if what not in numbers}


def test_labels_are_those_of_the_source(source):
    """A citation may leave out how a label begins, and of some alike how they end."""
    labels, found = re.findall(r"\\label\{([^}]*)\}", source), list(cited(LABEL))
    assert len(found) > 30
    for name, kind, one in found:
        pattern = re.compile(BEGIN[kind] + re.escape(one))
        assert any(map(pattern.match, labels)), (name, kind, one)
