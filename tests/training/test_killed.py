"""A run that is killed goes on by the same command, to the same result."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py
import numpy as np
import pytest

from keras_gdrn.training import fit
from tests._commands import ROOT
from tests.training._small import ARRAYS, RECIPE, assert_same_weights, network

KILLS = 40
EPOCHS = 200  # of three steps: more than are trained between so many kills

# For each line of its input a process that trains, all of them forked from one that
# has loaded what they need; it prints their numbers, and how each has ended.
_SCRIPT = """
import dataclasses, os, sys
from tests.training._small import ARRAYS, RECIPE, network
from keras_gdrn.training import fit
recipe = dataclasses.replace(RECIPE, epochs=int(sys.argv[2]))
for _ in sys.stdin:
    if not (child := os.fork()):
        how = {"out": sys.argv[1], "checkpoint_minutes": 0, "verbose": 0}
        fit(network(), recipe, ARRAYS, **how)
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@contextmanager
def killer(folder: Path, epochs: int) -> Iterator[Callable]:
    """A function that trains in a folder until a moment, and kills."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT, str(folder), str(epochs)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def train_and_kill(is_time: Callable[[], bool]) -> None:
        process.stdin.write(b"\n")
        process.stdin.flush()
        number = int(process.stdout.readline())
        with suppress(ProcessLookupError):
            while not is_time():
                os.kill(number, 0)  # an error, if it has ended
                time.sleep(0.002)
            os.kill(number, signal.SIGKILL)
        assert int(process.stdout.readline()) == signal.SIGKILL  # it had not ended

    yield train_and_kill
    process.communicate()


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
    with killer(tmp_path, RECIPE.epochs) as train_and_kill:
        train_and_kill(checkpoint.exists)
        train_and_kill(lambda: log.exists() and log.read_text().count("\n") > 1)
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
    with killer(tmp_path, EPOCHS) as train_and_kill:
        for _ in range(KILLS):
            count = rng.integers(4)
            seconds = rng.uniform(0, 0.1 if count else 2)
            train_and_kill(moment(file, count, seconds))
            if file.exists():
                with h5py.File(file) as checkpoint:
                    steps.append(int(checkpoint["state_of_run/step"][()]))
    print(f"Steps of the checkpoints after each of {KILLS} kills: {steps}")
    assert steps == sorted(steps)
    assert len(set(steps)) > KILLS / 3
    assert any(step % 3 for step in steps)  # within an epoch
    assert_ends_alike(tmp_path, EPOCHS)
