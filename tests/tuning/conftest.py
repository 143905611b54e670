"""The search is a script: its folder is what Python would search first."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
# For those that import Ray themselves: see keras_gdrn/tuning/_ray_tasks.py.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
sys.path.insert(0, str(ROOT / "tuning"))


@pytest.fixture(scope="session")
def tiny_images():
    """Random images and labels of three classes: a step."""
    random = np.random.default_rng(0)
    return random.random((8, 12, 12, 1), dtype="float32"), random.integers(3, size=8)


@pytest.fixture(autouse=True)
def _without_graphs(step_by_step):
    """What is trained here is trained for a step or two."""
