"""Keras Tuner's private names: every use of one stands here.

Keras Tuner is mended where a search would suffer, and it has no public names for the
calls between machines.
"""

import functools
import json
import os
import pkgutil
from pathlib import Path
from typing import Any

import grpc
import keras_tuner

TRIED = "1.4.7 and 1.4.8"
NAMES = (
    "keras_tuner.src.distribute.oracle_chief.OracleServicer",
    "keras_tuner.src.engine.conditions",
    "keras_tuner.src.protos.get_service",
    "keras_tuner.src.protos.get_service_grpc",
    "keras_tuner.src.utils.save_json",
    "keras_tuner.oracles.GridSearchOracle._compare",
    "keras_tuner.oracles.GridSearchOracle._ordered_ids",
    "keras_tuner.oracles.GridSearchOracle._populate_next",
    "keras_tuner.oracles.GridSearchOracle._retry_queue",  # every oracle has it
)


def require(name: str) -> None:
    """Imports what has this name, or raises an error: Keras Tuner has no such thing."""
    owner, _, attribute = name.rpartition(".")
    try:
        found = pkgutil.resolve_name(owner)
        getattr(found() if isinstance(found, type) else found, attribute)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"Keras Tuner {keras_tuner.__version__} has no {name}, which the command "
            f"search.py needs. It has been tried with versions {TRIED}"
        ) from error


for _name in NAMES:
    require(_name)
OracleServicer = keras_tuner.src.distribute.oracle_chief.OracleServicer
messages = keras_tuner.src.protos.get_service()  # between the chief and a worker
calls = keras_tuner.src.protos.get_service_grpc()  # of the chief by a worker


def mend_keras_tuner() -> None:
    """Files are written whole, and calls between machines print no stray numbers.

    Keras Tuner empties a file before it writes it. If it was killed then, or the disk
    was full, the state of the search would be gone.
    """
    keras_tuner.src.utils.save_json = _save_json
    # It was forgotten in `Condition.to_proto`.
    keras_tuner.src.engine.conditions.print = lambda *_: None


def mend_reloaded(oracle: keras_tuner.Oracle) -> None:
    """Makes every trial of a reloaded search that has not ended the next to be run.

    Keras Tuner would forget the one whose creation was interrupted, and run again what
    had ended just before. It also forgets how far a grid was searched, and would end.
    """
    ended = oracle.end_order
    oracle._retry_queue = [name for name in oracle.trials if name not in ended]
    if isinstance(oracle, keras_tuner.oracles.GridSearchOracle):
        _reload_grid(oracle)


def leave_to_workers(oracle: keras_tuner.Oracle, folder: Path) -> None:
    """Takes out of the queue the trials at which workers were when `folder` was left.

    They may still be at them.
    """
    file = folder / "oracle.json"
    if not file.exists():
        return
    state = json.loads(file.read_text(encoding="utf-8"))
    waiting = oracle._retry_queue
    for worker, trial_id in state["ongoing_trials"].items():
        if trial_id in waiting and trial_id not in state["retry_queue"]:
            waiting.remove(trial_id)
            oracle.ongoing_trials[worker] = oracle.trials[trial_id]


def call_through(tuner: keras_tuner.Tuner, channel: grpc.Channel) -> None:
    """Makes a tuner, which was made as a worker, call its chief through `channel`."""
    tuner.oracle.stub = calls.OracleStub(channel)


def _reload_grid(oracle: keras_tuner.oracles.GridSearchOracle) -> None:
    def compare(one: str, other: str) -> int:
        values = [oracle.trials[name].hyperparameters.values for name in (one, other)]
        return oracle._compare(*values)

    for name in sorted(oracle.trials, key=functools.cmp_to_key(compare)):
        oracle._ordered_ids.insert(name)
        oracle._populate_next.append(name)


def _save_json(path: str, obj: Any) -> str:
    text, file = json.dumps(obj), Path(path)
    partial = file.with_name(f"partial-{file.name}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, file)
    return text
