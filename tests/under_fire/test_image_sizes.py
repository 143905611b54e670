"""From one pixel to a thousand on a side: an answer, in memory that can be foretold."""

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.models import gauss_der_resnet

ROOT = Path(__file__).resolve().parents[2]
# The largest jet and its mix, twice: in a residual block, and while it is entered.
MAPS = 30

on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="measured on TensorFlow"
)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 7), (2, 2), (3, 2), (5, 5), (33, 17)])
def test_small_and_odd_images(sizes):
    model = gauss_der_resnet((*sizes, 1), 3, [3, 4], 1.0, sigma0=[0.3, 1.0])
    images = np.random.default_rng(0).random((2, *sizes, 1), "float32")
    assert np.isfinite(np.asarray(model(images))).all()
    assert np.isfinite(np.asarray(model(images, training=True))).all()


@on_tensorflow
@pytest.mark.skipif(sys.platform != "linux", reason="measured by Linux' /proc")
@pytest.mark.parametrize(
    "side",
    [
        pytest.param(192, marks=pytest.mark.slow),
        pytest.param(1024, marks=pytest.mark.endurance),
    ],
)
def test_memory_grows_by_the_pixel(side):
    done = subprocess.run(
        [sys.executable, "-m", "tests.under_fire.memory", str(side)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert 1 < float(done.stdout) < MAPS
