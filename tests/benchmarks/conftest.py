"""The benchmarks are scripts, run on little data."""

import sys

import pytest

from tests._commands import ROOT, cells, modules_of


@pytest.fixture
def gpu():
    """The modules of `benchmarks/gpu`, by name."""
    with modules_of(ROOT / "benchmarks") as module:
        sys.path.insert(0, str(ROOT / "benchmarks" / "gpu"))
        yield module


@pytest.fixture
def studies():
    """The modules of `benchmarks/studies`, by name."""
    with modules_of(ROOT / "benchmarks" / "studies") as module:
        yield module


@pytest.fixture
def table_of(command, step_by_step):
    """Runs a script; the rows of the table that it prints, without the header."""

    def run(script, *options) -> list[list[str]]:
        done = command(f"benchmarks/{script}", *options)
        assert done.returncode == 0, done.stderr
        table = cells(done.stdout)
        assert len({len(row) for row in table}) == 1
        return table[2:]

    return run
