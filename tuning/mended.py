"""Keras Tuner 1.4, mended where a search would suffer."""

import functools
import json
from pathlib import Path
from typing import Any

import keras_tuner
from keras_tuner.src import utils
from keras_tuner.src.engine import conditions

from keras_gdrn.training._run_folder import write_whole


def mend_keras_tuner() -> None:
    """Files are written whole, and calls between machines print no stray numbers.

    Keras Tuner empties a file before it writes it. If it was killed then, or the disk
    was full, the state of the search would be gone.
    """
    utils.save_json = _save_json
    conditions.print = lambda *_: None  # it was forgotten in `Condition.to_proto`


def mend_reloaded(oracle: keras_tuner.Oracle) -> None:
    """Makes every trial of a reloaded search that has not ended the next to be run.

    Keras Tuner would forget the one whose creation was interrupted, and run again what
    had ended just before. It also forgets how far a grid was searched, and would end.
    """
    ended = oracle.end_order
    oracle._retry_queue = [name for name in oracle.trials if name not in ended]
    if isinstance(oracle, keras_tuner.oracles.GridSearchOracle):
        _reload_grid(oracle)


def _reload_grid(oracle: keras_tuner.oracles.GridSearchOracle) -> None:
    def compare(one: str, other: str) -> int:
        values = [oracle.trials[name].hyperparameters.values for name in (one, other)]
        return oracle._compare(*values)

    for name in sorted(oracle.trials, key=functools.cmp_to_key(compare)):
        oracle._ordered_ids.insert(name)
        oracle._populate_next.append(name)


def _save_json(path: str, obj: Any) -> str:
    text = json.dumps(obj)
    write_whole(Path(path), text)
    return text
