"""The notebooks, from top to bottom in a folder of their own, and what they carry."""

import re
import sys

import keras
import matplotlib
import pytest

from tests._commands import ROOT

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from IPython.utils.capture import capture_output  # noqa: E402
from matplotlib_inline.config import InlineBackend  # noqa: E402
from traitlets.config import Config  # noqa: E402

FOLDER = ROOT / "examples" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
MAX_BYTES = 150_000  # of a notebook with its outputs
# Warnings, and paths: a slash or a drive, and a folder.
NOISE = re.compile(r"WARNING|Warning|(?<![\w.:/<])(?:/[\w.~-]+/|[A-Za-z]:\\)")


@pytest.fixture
def shell(monkeypatch):
    """Runs cells in this process, which has loaded TensorFlow already."""
    # Pictures are outputs of cells.
    monkeypatch.setattr(InteractiveShell, "enable_gui", lambda self, gui=None: None)
    without_history = Config({"HistoryManager": {"enabled": False}})
    with matplotlib.rc_context():
        yield InteractiveShell.instance(config=without_history)
    InteractiveShell.clear_instance()
    InlineBackend.clear_instance()


def read(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def has_picture(outputs):
    return any("image/" in " ".join(output.get("data", ())) for output in outputs)


@pytest.mark.parametrize("name", NAMES)
def test_committed_outputs(name):
    notebook = read(name)
    nbformat.validate(notebook)
    assert not any("sys.path" in cell.source for cell in notebook.cells)
    assert (FOLDER / f"{name}.ipynb").stat().st_size < MAX_BYTES
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))  # in one go, from top to bottom
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    data = [item for output in outputs for item in output.get("data", {}).items()]
    texts = [output.get("text", "") for output in outputs]
    texts += [text for kind, text in data if kind.startswith("text/")]
    assert "No GPU here" in "".join(texts)  # not of the quick mode
    assert has_picture(outputs) and not NOISE.search("\n".join(texts))
    kinds = {output.get("name", output.output_type) for output in outputs}
    assert kinds <= {"stdout", "execute_result", "display_data"}


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="Colab's backend is TensorFlow"
)
@pytest.mark.filterwarnings("ignore:.*deprecated in traitlets:DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_runs_from_top_to_bottom(name, shell, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_GDRN_BUDGET", "smoke")
    monkeypatch.chdir(tmp_path)
    for cell in code_cells(read(name)):
        with shell.display_trap, capture_output() as seen:
            result = shell.run_cell(cell.source)
        result.raise_error()
        assert not seen.stderr and not NOISE.search(seen.stdout)
        found = has_picture({"data": output.data} for output in seen.outputs)
        assert found == has_picture(cell.outputs), cell.id


@pytest.mark.slow
def test_outputs_are_kept(monkeypatch, tmp_path, main):
    """By a kernel of its own, as of `examples/notebooks/execute.py`."""
    monkeypatch.syspath_prepend(FOLDER)
    import execute

    cell = nbformat.v4.new_code_cell("import os\nprint(os.listdir())\n1 + 1")
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"mine": 3})
    nbformat.write(notebook, tmp_path / "small.ipynb")
    monkeypatch.setattr(execute, "FOLDER", tmp_path)
    assert main(execute, "small.ipynb") == "Executed small.ipynb\n"
    executed = nbformat.read(tmp_path / "small.ipynb", as_version=4)
    printed, value = executed.cells[0].outputs
    assert (printed.text, value.data["text/plain"]) == ("[]\n", "2")  # in no folder
    assert executed.metadata == {"mine": 3}
    sys.modules.pop("execute")
