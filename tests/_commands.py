"""Commands run in this process, which has loaded TensorFlow already."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from types import ModuleType
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / name for name in ("examples", "tuning", "benchmarks")]
INSIDE = tuple(f"{folder}{os.sep}" for folder in FOLDERS)


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs a command, such as `"examples/demo.py"`, as a process of its own would."""

    def run(command, *given) -> CompletedProcess:
        path, arguments = ROOT / command, list(map(str, given))
        capsys.readouterr()  # what was printed before
        monkeypatch.setattr(sys, "argv", [path.name, *arguments])
        status = None
        try:
            with modules_of(path.parent) as module:
                module(path.stem).main()
        except SystemExit as stopped:
            status = stopped.code
        out, error = capsys.readouterr()
        if isinstance(status, str):
            status, error = 1, f"{error}{status}\n"
        return CompletedProcess([command, *arguments], status or 0, out, error)

    return run


@contextmanager
def modules_of(folder: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Modules of this folder can be imported, and those of no other command are known.

    Folders have modules of the same names.
    """
    path, others = list(sys.path), _forget_commands()
    sys.path.insert(0, str(folder))
    try:
        with mock.patch.dict(os.environ):
            yield importlib.import_module
    finally:
        _forget_commands()
        sys.modules.update(others)
        sys.path[:] = path


def cells(text: str) -> list[list[str]]:
    """Those of each row of the tables in a text, also of the headers."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def _forget_commands() -> dict:
    # Text: there are thousands of modules, and a `Path` of each takes a second.
    files = {n: getattr(m, "__file__", None) for n, m in sys.modules.items()}
    names = [name for name, file in files.items() if str(file).startswith(INSIDE)]
    return {name: sys.modules.pop(name) for name in names}
