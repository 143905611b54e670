"""The examples are scripts: their folder is what Python would search first."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def examples(monkeypatch) -> Path:
    monkeypatch.syspath_prepend(EXAMPLES)
    return EXAMPLES


@pytest.fixture(autouse=True)
def _without_graphs(step_by_step):
    """What is trained here is trained for a step or two."""
