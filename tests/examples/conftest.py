"""The examples are scripts: their folder is what Python would search first."""

import sys

import pytest

from tests._commands import ROOT, modules_of

EXAMPLES, PAPER = ROOT / "examples", ROOT / "examples" / "paper"


@pytest.fixture
def script():
    """The modules of the examples, by name: `script("demo")`."""
    with modules_of(EXAMPLES) as module:
        yield module


@pytest.fixture
def paper():
    """The modules of the reproduction, by name: `paper("run")`."""
    with modules_of(PAPER) as module:
        yield module


@pytest.fixture(autouse=True)
def _without_graphs(step_by_step):
    """What is trained here is trained for a step or two."""


@pytest.fixture
def main(monkeypatch, tmp_path, capsys):
    """Runs the main function of a module in an empty folder; returns what it prints."""

    def run(module, *arguments) -> str:
        monkeypatch.chdir(tmp_path)
        command = [f"{module.__name__}.py", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", command)
        module.main()
        return capsys.readouterr().out

    return run
