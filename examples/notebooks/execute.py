"""Executes the notebooks from top to bottom and keeps their outputs.

    python examples/notebooks/execute.py                # all of them, in this folder
    python examples/notebooks/execute.py 3_look_inside.ipynb

The environment variable KERAS_GDRN_BUDGET is `full`, `small` or `smoke`, which takes
seconds and means nothing; without it, a GPU decides. Needs nbclient and ipykernel,
which are in the extra `test`.
"""

import argparse
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from keras_gdrn.commands import errors_in_one_line

FOLDER = Path(__file__).parent


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="by default all")
    names = parser.parse_args().names
    for name in names or sorted(path.name for path in FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(execute(FOLDER / name, folder), FOLDER / name)
        print(f"Executed {name}")


def execute(path: Path, folder: str | Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; `folder` is where its code runs and writes."""
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()
    client = NotebookClient(
        notebook,
        timeout=3600,  # seconds of a cell
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,
        # TensorFlow greets a machine without a GPU in words that Python never sees.
        extra_arguments=["--IPKernelApp.capture_fd_output=False"],
    )
    executed = client.execute()
    executed.metadata = metadata  # not the version of the Python that it ran on
    return executed


if __name__ == "__main__":
    main()
