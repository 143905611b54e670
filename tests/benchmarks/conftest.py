"""The benchmarks are scripts: a process of its own runs each, on little data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def table_of():
    """Runs a script; the rows of the table that it prints, without the header."""

    def run(script, *options) -> list[list[str]]:
        command = [
            sys.executable,
            str(ROOT / "benchmarks" / script),
            *map(str, options),
        ]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
        table = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
        assert len({len(row) for row in table}) == 1
        return table[2:]

    return run
