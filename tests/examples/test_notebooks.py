"""The notebooks, from top to bottom in a folder of their own, and what they carry."""

import json
import re

import keras
import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NAMES = (
    "1_build_and_generalize",
    "2_train_on_a_rescaled_dataset",
    "3_look_inside",
    "4_search",
)
LARGEST = 150_000  # bytes of a notebook with its outputs
# Warnings, and paths: a slash or a drive, and a folder.
NOISE = re.compile(r"WARNING|Warning|(?<![\w.:/<])(?:/[\w.~-]+/|[A-Za-z]:\\)")
every_notebook = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def notebooks(examples):
    return examples / "notebooks"


@pytest.fixture
def committed(notebooks, name):
    return nbformat.read(notebooks / f"{name}.ipynb", as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def pictures(notebook):
    """The cells that show a picture."""
    return [
        cell.id
        for cell in code_cells(notebook)
        if any("image/" in " ".join(of.get("data", ())) for of in cell.outputs)
    ]


def text(notebook):
    """All that can be read in the outputs."""
    found = []
    for output in outputs(notebook):
        data = output.get("data", {})
        found.append(output.get("text", ""))
        found += [data[kind] for kind in data if kind.startswith("text/")]
    return "\n".join(found)


def test_all_notebooks_are_known(notebooks):
    assert sorted(path.stem for path in notebooks.glob("*.ipynb")) == sorted(NAMES)


def test_all_install_the_same_package_and_need_nothing_else(notebooks):
    paths = [notebooks / f"{name}.ipynb" for name in NAMES]
    cells = [code_cells(nbformat.read(path, as_version=4)) for path in paths]
    assert len({install.source for install, *_ in cells}) == 1
    assert not any("sys.path" in cell.source for each in cells for cell in each)


@every_notebook
def test_committed_outputs(committed, notebooks, name):
    nbformat.validate(committed)
    assert (notebooks / f"{name}.ipynb").stat().st_size < LARGEST
    counts = [cell.execution_count for cell in code_cells(committed)]
    assert counts == list(range(1, len(counts) + 1))  # in one go, from top to bottom
    assert "No GPU here" in text(committed)  # not of the quick mode
    assert pictures(committed)
    assert not NOISE.search(text(committed))
    kinds = {output.get("name", output.output_type) for output in outputs(committed)}
    assert kinds <= {"stdout", "execute_result", "display_data"}


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="Colab's backend is TensorFlow"
)
@every_notebook
def test_runs_from_top_to_bottom(committed, notebooks, name, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(notebooks)
    monkeypatch.setenv("KERAS_GDRN_BUDGET", "smoke")
    from execute import execute

    executed = execute(notebooks / f"{name}.ipynb", tmp_path)
    nbformat.validate(executed)
    assert pictures(executed) == pictures(committed)
    assert not NOISE.search(text(executed))
    assert len(json.dumps(executed)) < LARGEST
    streams = {output.get("name", "stdout") for output in outputs(executed)}
    assert streams == {"stdout"}  # nothing to warn of
