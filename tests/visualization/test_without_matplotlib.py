"""What only computes does not need the extra `viz`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
from tests import without

without.block("matplotlib")
import numpy as np
from keras_gdrn.models import scale_channel
from keras_gdrn.visualization import activation_maps, basis_kernels, effective_filters

channel = scale_channel((8, 8, 1), 3, [4], 1.2)
assert activation_maps(channel, np.zeros((2, 8, 8, 1)), [0, 1]).shape == (2, 3, 8, 8)
assert effective_filters(channel.get_layer("head")).ndim == 4
assert len(basis_kernels(1.0)) == 6
"""


def run(program):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )


def test_arrays_are_computed_without_matplotlib():
    done = run(PROGRAM)
    assert done.returncode == 0, done.stderr


def test_blocked_matplotlib_is_noticed():
    """The test above would fail if the package needed matplotlib."""
    done = run(PROGRAM.replace("import numpy", "import matplotlib, numpy", 1))
    assert done.returncode != 0 and "No module named 'matplotlib'" in done.stderr
