"""From one pixel to a thousand on a side: an answer, in predictable memory."""

import multiprocessing
import os
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gdrn.models import gauss_der_resnet, scale_channel

WIDTH = 8
CLEAR_PEAK = "/proc/self/clear_refs"
# The largest jet and its mix, twice: in a residual block, and in the layer before it.
MAPS = 30


@pytest.mark.parametrize("sizes", [(1, 1), (1, 7), (3, 2), (33, 17)])
def test_small_and_odd_images(sizes):
    model = gauss_der_resnet((*sizes, 1), 3, [3, 4], 1.0, sigma0=[0.3, 1.0])
    images = np.random.default_rng(0).random((2, *sizes, 1), "float32")
    assert np.isfinite(np.asarray(model(images))).all()
    assert np.isfinite(np.asarray(model(images, training=True))).all()


def resident(kind: str) -> int:
    """Bytes of memory of this process: `RSS` now, `HWM` at the peak."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"Vm{kind}:\s+(\d+) kB", status)[1])


def maps_in_memory(side: int) -> float:
    """At the peak of an answer, in maps as large as the image."""
    channel = scale_channel((None, None, 3), 10, [WIDTH, WIDTH], 1.5)
    channel(np.zeros((1, 8, 8, 3), "float32"))
    images = np.random.default_rng(0).random((1, side, side, 3), "float32")
    Path(CLEAR_PEAK).write_text("5")  # the peak is what there is now
    before = resident("RSS")
    assert np.isfinite(np.asarray(channel(images))).all()
    return (resident("HWM") - before) / (4 * WIDTH * side**2)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow" or not os.access(CLEAR_PEAK, os.W_OK),
    reason="measured on TensorFlow, by Linux' /proc",
)
@pytest.mark.slow
@pytest.mark.parametrize("side", [256, pytest.param(1024, marks=pytest.mark.endurance)])
def test_memory_grows_by_the_pixel(side):
    # In a process of its own: here memory is used that other tests have freed.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
        assert 1 < alone.submit(maps_in_memory, side).result() < MAPS
