"""The documentation: no name, argument or picture is missing, no link leads nowhere.

Citations of the paper name what is there. The numbers of its sections and tables come
here with their labels in its source; where that is at hand, labels are looked up there.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import keras_gdrn

ROOT = Path(__file__).resolve().parents[1]
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
# Numbers that are cited, with the labels of what is meant.
NUMBERED = {
    "Sec. 3.1": "sec-scale-covariance-properties",
    "Sec. 3.2": "sec-diffusion-eq-and-pdes",
    "Sec. 4": "sec-rescaled-datasets",
    "Sec. 4.1": "sec-rescaled-image-datasets",
    "Sec. 5.2": "sec-training-protocol",
    "Sec. 6": "sec-experiments",
    "Sec. 6.1": "sec-single-scale-exp",
    "Sec. 6.2": "sec-scale-gen-experiments",
    "Sec. 7.1": "sec-zero-order-term-study",
    "Sec. 8": "sec-network-function-visualisation",
    "Sec. A.1": "sec-single-sc-net-gen-appendix",
    "Sec. A.2": "sec-standard-vs-dwsc",
    "Sec. A.3": "sec-effect-of-label-smoothing-appendix",
    "Sec. A.4": "sec-pre-training",
    "Sec. A.5": "sec-semi-multi-training",
    "Sec. A.6": "sec-filt-vis-subsection-appendix",
    "Table 1": "tab:model-parameters",
    "Table 2": "tab:training-parameters",
}
LABEL = r"[a-z0-9]+(?:-[a-z0-9+]+)+"
NUMBER = r"\d+(?:\.\d+)?|A\.\d"
# How labels of what is cited so begin.
BEGIN = {"Eq.": "(eq[-:])?", "Sec.": "sec-", "Table": "tab:", "Fig.": "fig-"}


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
        arguments = sections.get("Args", "")
        entries = re.findall(r"^ {4}([*\w, ]+): [^a-z]", arguments, re.M)
        names = set(re.findall(r"\w+", " ".join(entries)))
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


def test_numbers_are_those_that_are_known():
    found = {(name, f"{kind} {one}") for name, kind, one in cited(NUMBER)}
    assert not {(name, what) for name, what in found if what not in NUMBERED}
    assert {what for _, what in found} == set(NUMBERED)


def test_labels_are_those_of_the_source():
    """A citation may leave out how a label begins, and of some alike how they end."""
    found = list(cited(LABEL))
    assert len(found) > 30
    if not SOURCE.exists():
        pytest.skip(f"{SOURCE} is not there")
    source = SOURCE.read_text(encoding="utf-8")
    labels = re.findall(r"\\label\{([^}]*)\}", source)
    assert set(NUMBERED.values()) <= set(labels)
    for name, kind, one in found:
        pattern = re.compile(BEGIN[kind] + re.escape(one))
        assert any(map(pattern.match, labels)), (name, kind, one)
