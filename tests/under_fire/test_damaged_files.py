"""A damaged file gets an error, or is read where the damage does not matter."""

import re
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.models import gauss_der_resnet

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="files do not depend on it"
)


@pytest.mark.slow
def test_no_damage_crashes_or_hangs_the_reader(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "whole.h5", "w") as file:
        file["x_test"] = np.random.default_rng(0).random((4, 6, 6, 3), "float32")
        file["y_test"] = np.arange(4)
    model = gauss_der_resnet((8, 8, 1), 3, [2, 2], 1.3, sigma0=[1.0, 1.4])
    model.save(tmp_path / "whole.keras")
    count = 60
    done = subprocess.run(
        [sys.executable, "-m", "tests.under_fire.fuzz", tmp_path, str(count), "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [".h5", ".keras"]
    for line in lines:
        assert sum(map(int, re.findall(r": (\d+)", line))) == count
        assert "Error" in line
