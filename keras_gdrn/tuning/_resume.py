"""What Keras Tuner lacks for searches that may be killed at any moment."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras_tuner
from keras_tuner.engine.trial import Trial


@contextlib.contextmanager
def whole_files(tuner: keras_tuner.Tuner) -> Iterator[None]:
    """The files of a search are written entirely or not at all.

    Keras Tuner empties a file before it writes it: killed then, it could not resume.
    """
    oracle, folder = tuner.oracle, Path(tuner.project_dir)

    def save_trial(self: Trial, fname: str) -> None:
        _write(Path(fname), self.get_state())

    def save_oracle() -> None:
        _write(folder / "oracle.json", oracle.get_state())

    Trial.save, oracle.save = save_trial, save_oracle
    try:
        yield
    finally:
        del Trial.save, oracle.save


def resume(tuner: keras_tuner.Tuner) -> None:
    """Lets the oracle create the trials anew that were running, and then others."""
    oracle = tuner.oracle
    oracle.save()
    if not Path(tuner.project_dir, f"{tuner.tuner_id}.json").exists():
        tuner.save()  # otherwise Keras Tuner would not reload the rest
    tuner.reload()
    # Killed while it created a trial, it would count the trial and never run it.
    for name in set(oracle.trials) - set(oracle.start_order):
        del oracle.trials[name]
    if isinstance(oracle, keras_tuner.oracles.GridSearchOracle):
        _reload_grid(oracle)


def _reload_grid(oracle: keras_tuner.oracles.GridSearchOracle) -> None:
    """Tells a grid which of its points have been tried; Keras Tuner does not store it.

    As its first point, of which there is one where no trial has started, each is
    appended to the points whose next one is to be tried, in the order of the grid.
    """
    started, space = oracle.start_order, oracle.get_space().space

    def position(name: str) -> list[int]:
        values = oracle.trials[name].hyperparameters.values
        return [_order(hp).index(values[hp.name]) for hp in space if hp.name in values]

    for name in sorted(started, key=position):
        oracle.start_order = []
        oracle.populate_space(name)
    oracle.start_order = started


def _order(hp: Any) -> list:
    """The values of a hyperparameter in the order in which a grid tries them."""
    return [hp.default, *(value for value in hp.values if value != hp.default)]


def _write(file: Path, state: dict) -> None:
    partial = file.with_name(f"partial-{file.name}")
    partial.write_text(json.dumps(state), encoding="utf-8")
    os.replace(partial, file)
