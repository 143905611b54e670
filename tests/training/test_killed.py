"""A run that is killed goes on by the same command, to the same result."""

import dataclasses
import multiprocessing
import os
import signal
import time
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

from keras_gdrn.training import fit
from tests.training._small import ARRAYS, RECIPE, assert_same_weights, network

# Processes are forked from one that has loaded what they need.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.training._small"])
CHECKPOINT = "checkpoint.weights.h5"


def train(epochs: int, folder: Path | None = None, seed=0, **options):
    model, recipe = network(seed), dataclasses.replace(RECIPE, epochs=epochs)
    found = fit(model, recipe, ARRAYS, out=folder, verbose=0, **options)
    return model, found


def train_and_kill(epochs: int, folder: Path, checkpoints: int, seconds: float) -> None:
    """After so many checkpoints were written, and then so many seconds passed."""
    options = {"checkpoint_minutes": 0}
    process = FORKED.Process(target=train, args=(epochs, folder), kwargs=options)
    process.start()
    for _ in range(checkpoints):
        before = written(folder)
        while process.is_alive() and written(folder) == before:
            time.sleep(0.002)
    time.sleep(seconds)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL  # it had not ended


def written(folder: Path) -> int:
    file = folder / CHECKPOINT
    return file.stat().st_mtime_ns if file.exists() else 0


class Terminating(keras.callbacks.Callback):
    """Terminates the process in one of three steps of the first epoch."""

    def __init__(self, step: int):
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(("step", "epochs"), [(2, 2), (3, 1)])
def test_terminated_after_the_present_step(tmp_path, step, epochs):
    """As by `timeout`: no checkpoint was due, and nothing is lost."""
    options = {"callbacks": [Terminating(step)]}
    process = FORKED.Process(target=train, args=(epochs, tmp_path), kwargs=options)
    process.start()
    process.join()
    assert process.exitcode == 128 + signal.SIGTERM
    with h5py.File(tmp_path / CHECKPOINT) as file:
        assert file["state_of_run/step"][()] == step
    (whole, _), (resumed, found) = train(epochs), train(epochs, tmp_path, seed=1)
    assert found.epoch == list(range(epochs))
    assert_same_weights(resumed, whole)


# While it starts, between checkpoints, and while it writes one.
RNG = np.random.default_rng(0)
MOMENTS = [(n, RNG.uniform(0, 0.1 if n else 2)) for n in RNG.integers(4, size=40)]


@pytest.mark.parametrize(
    ("epochs", "kills"),
    [
        # Within the first epoch, and after it: each has three checkpoints.
        pytest.param(3, [(1, 0.0), (3, 0.0)], marks=pytest.mark.slow),
        # More epochs than are trained between so many kills.
        pytest.param(200, MOMENTS, marks=pytest.mark.endurance),
    ],
    ids=["twice", "at random"],
)
def test_killed_at_any_moment(tmp_path, epochs, kills):
    steps = []
    for kill in kills:
        train_and_kill(epochs, tmp_path, *kill)
        if written(tmp_path):
            with h5py.File(tmp_path / CHECKPOINT) as checkpoint:
                steps.append(int(checkpoint["state_of_run/step"][()]))
    print(f"Steps of the checkpoints after each of {len(kills)} kills: {steps}")
    assert steps == sorted(steps)
    assert len(set(steps)) > len(kills) / 3
    assert any(step % 3 for step in steps)  # within an epoch
    (whole, expected), (resumed, found) = train(epochs), train(epochs, tmp_path, seed=1)
    assert found.epoch == list(range(epochs))
    assert_same_weights(resumed, whole)
    assert found.history["loss"] == pytest.approx(expected.history["loss"])
