"""The files of a search, looked at before Keras Tuner reads them.

It would end in a KeyError or the like that names no file.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras_tuner


def check_state(folder: Path) -> None:
    """What Keras Tuner has written into a folder must be what it can read.

    Args:
        folder: Of the trials; one that is not there yet is fine.

    Raises:
        ValueError: Names the first file that is damaged or of something else.
        FileNotFoundError: Names the first file that is missing, but for those that an
            interruption leaves out.
    """
    for file in sorted(folder.glob("trial_*/trial.json")):
        _check(file, _check_trial)
    for file in sorted(folder.glob("oracle.json")):
        _check(file, _check_oracle)
    for file in sorted(folder.glob("tuner*.json")):
        _check(file, lambda state: None)
    for file in _missing(folder):
        raise FileNotFoundError(
            f"{file} is missing, without which this search cannot go on. Copy it back "
            "from a backup, or search anew in another folder"
        )


def _missing(folder: Path) -> Iterator[Path]:
    """The files that Keras Tuner has written before others that are there."""
    oracle, tuner = folder / "oracle.json", folder / "tuner0.json"
    if not oracle.exists():
        trials = map(_read, folder.glob("trial_*/trial.json"))
        # A search that was killed in its creation of the first trial has this alone.
        if tuner.exists() or any(trial["status"] != "RUNNING" for trial in trials):
            yield oracle
        return
    state = _read(oracle)
    for name in state["start_order"]:
        file = folder / f"trial_{name}" / "trial.json"
        if not file.exists():
            yield file
    # It is there since the first trial has ended.
    if len(state["end_order"]) > 1 and not tuner.exists():
        yield tuner


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _check(file: Path, check: Callable[[dict], None]) -> None:
    try:
        state = _read(file)
        if not isinstance(state, dict):
            raise TypeError(f"{str(state)[:40]!r} is no object")
        check(state)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} must be a file of Keras Tuner's, and is damaged or of something "
            "else. Copy it back from a backup, or search anew in another folder. "
            f"Received: {type(error).__name__}: {error}"
        ) from error


def _check_trial(state: dict[str, Any]) -> None:
    keras_tuner.engine.trial.Trial.from_state(state)


def _check_oracle(state: dict[str, Any]) -> None:
    keras_tuner.HyperParameters.from_config(state["hyperparameters"])
    any_oracle = keras_tuner.oracles.RandomSearchOracle(
        keras_tuner.Objective("any", "max"), max_trials=1
    )
    like = json.loads(json.dumps(any_oracle.get_state()))
    for name, expected in like.items():
        if type(state[name]) is not type(expected):
            raise TypeError(f"{name} is {str(state[name])[:40]!r}")
