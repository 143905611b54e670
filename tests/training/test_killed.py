"""A run that is killed goes on by the same command, to the same result."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from keras_gdrn.training import fit
from tests.training.test_fit import ARRAYS, RECIPE, assert_same_weights, network

KILLS = 40
EPOCHS = 200  # of three steps: more than are trained between so many kills

_SCRIPT = """
import dataclasses, sys
from tests.training.test_fit import ARRAYS, RECIPE, network
from keras_gdrn.training import fit
model, recipe = network(), dataclasses.replace(RECIPE, epochs=int(sys.argv[2]))
input("loaded\\n")
fit(model, recipe, ARRAYS, out=sys.argv[1], checkpoint_minutes=0, verbose=0)
"""


def loading(folder: Path, epochs: int) -> subprocess.Popen:
    """A process that loads all it needs, and trains when it is told to."""
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, str(folder), str(epochs)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def train_and_kill(process: subprocess.Popen, is_time: Callable[[], bool]) -> None:
    assert process.stdout.readline() == b"loaded\n"
    process.stdin.write(b"\n")
    process.stdin.flush()
    while process.poll() is None and not is_time():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL  # it had not ended


def assert_ends_alike(folder: Path, epochs: int) -> None:
    recipe = dataclasses.replace(RECIPE, epochs=epochs)
    whole, resumed = network(), network(seed=1)
    history = fit(whole, recipe, ARRAYS, verbose=0).history
    found = fit(resumed, recipe, ARRAYS, out=folder, verbose=0)
    assert found.epoch == list(range(epochs))
    assert_same_weights(resumed, whole)
    np.testing.assert_allclose(found.history["loss"], history["loss"], rtol=1e-6)


@pytest.mark.slow
def test_killed_twice(tmp_path):
    """Within the first epoch, and after it."""
    checkpoint, log = tmp_path / "checkpoint.weights.h5", tmp_path / "log.csv"
    processes = [loading(tmp_path, RECIPE.epochs) for _ in range(2)]
    train_and_kill(processes[0], checkpoint.exists)
    train_and_kill(
        processes[1], lambda: log.exists() and log.read_text().count("\n") > 1
    )
    assert_ends_alike(tmp_path, RECIPE.epochs)


def moment(file: Path, count: int, seconds: float) -> Callable[[], bool]:
    """Whether so many checkpoints were written, and then so many seconds passed."""
    seen, start = set(), time.perf_counter()

    def is_time() -> bool:
        nonlocal start
        if len(seen) <= count:
            seen.add(file.stat().st_mtime_ns if file.exists() else 0)
            start = time.perf_counter()
        return len(seen) > count and time.perf_counter() - start >= seconds

    return is_time


@pytest.mark.endurance
def test_killed_at_random_moments(tmp_path):
    """While it starts, between checkpoints, and while it writes one."""
    rng, file, steps = np.random.default_rng(0), tmp_path / "checkpoint.weights.h5", []
    following = loading(tmp_path, EPOCHS)
    for _ in range(KILLS):
        process, following = following, loading(tmp_path, EPOCHS)
        count = rng.integers(4)
        seconds = rng.uniform(0, 0.1 if count else 2)
        train_and_kill(process, moment(file, count, seconds))
        if file.exists():
            with h5py.File(file) as checkpoint:
                steps.append(int(checkpoint["state_of_run/step"][()]))
    following.kill()
    following.communicate()
    print(f"Steps of the checkpoints after each of {KILLS} kills: {steps}")
    assert steps == sorted(steps)
    assert len(set(steps)) > KILLS / 3
    assert any(step % 3 for step in steps)  # within an epoch
    assert_ends_alike(tmp_path, EPOCHS)
