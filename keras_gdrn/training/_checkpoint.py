"""The checkpoint of a run, and its log."""

import csv
import dataclasses
import errno
import hashlib
import io
import json
import math
import shutil
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from keras_gdrn.commands import atomic_write, write_text
from keras_gdrn.training._run_folder import SETTINGS

CHECKPOINT = "checkpoint.weights.h5"  # Keras requires the suffix
LOG = "log.csv"

_STATE = "state_of_run"  # a group of the file, which Keras leaves alone

# Between the content and its SHA-256. HDF5 ignores what follows its end.
_MARK = b"\nsha256:"


@dataclasses.dataclass
class State:
    """What a run needs to resume, besides the weights and the optimizer."""

    step: int = 0  # steps trained so far, in all epochs
    rows: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # of the log
    # Within an epoch: metrics and states of random number generators.
    values: list[np.ndarray] = dataclasses.field(default_factory=list)
    stopped: bool = False  # by a callback, for good


def seed_generator_states(model: keras.Model) -> list[keras.Variable]:
    """The states of a model's random number generators, such as those of dropout."""
    variables = model.non_trainable_variables
    return [v for v in variables if v.name == "seed_generator_state"]


def restore(model: keras.Model, state: State) -> None:
    """Restores the metrics and random number generators of a state."""
    variables = [*model.metrics_variables, *seed_generator_states(model)]
    for variable, value in zip(variables, state.values, strict=True):
        variable.assign(value)


def save(
    model: keras.Model, folder: Path, step: int, rows: list, stopped: bool = False
) -> None:
    """Replaces the checkpoint, and writes the log."""
    _check_space(model, folder)
    with atomic_write(folder / CHECKPOINT) as partial:
        model.save_weights(partial, overwrite=True)
        with h5py.File(partial, "a") as file:
            group = file.create_group(_STATE)
            group["step"], group["rows"] = step, json.dumps(rows, default=float)
            group["stopped"] = stopped
            variables = [*model.metrics_variables, *seed_generator_states(model)]
            for number, value in enumerate(map(keras.ops.convert_to_numpy, variables)):
                group[f"values/{number}"] = value
        digest = _digest(folder, partial.read_bytes())
        with partial.open("ab") as file:
            file.write(_MARK + digest)
    _write_log(folder, rows)


def resume(model: keras.Model, folder: Path) -> State:
    """Loads weights and optimizer of a checkpoint, if any; returns its other state."""
    path, log = folder / CHECKPOINT, folder / LOG
    if not path.exists():
        if log.exists():
            raise FileExistsError(
                f"{folder} has the {LOG} of a run, but its checkpoint is gone: copy it "
                "back from a backup, or choose another folder."
            )
        return State()
    content, _, digest = path.read_bytes().rpartition(_MARK)
    if digest != _digest(folder, content):
        raise OSError(
            f"{path} is damaged or of another run: its checksum does not match its "
            f"content and {SETTINGS}. Copy it back from a backup, or train again in "
            "another folder."
        )
    model.load_weights(path)
    with h5py.File(path) as file:
        group: Any = file[_STATE]
        values = group.get("values", {})
        values = [values[str(number)][()] for number in range(len(values))]
        step, rows = int(group["step"][()]), json.loads(group["rows"][()])
        state = State(step, rows, values, bool(group["stopped"][()]))
    if state.rows:
        _write_log(folder, state.rows)  # without rows after the checkpoint
    return state


def _write_log(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Writes a row for each epoch, with empty cells for missing values.

    It is written after the checkpoint: a log without one means that one was lost.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder / LOG, text.getvalue())


def history(rows: list[dict[str, Any]]) -> keras.callbacks.History:
    """The history that Keras would return, with NaN for missing values."""
    result = keras.callbacks.History()
    for name in _columns(rows):
        result.history[name] = [row.get(name, math.nan) for row in rows]
    result.epoch = result.history.pop("epoch", [])
    return result


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _digest(folder: Path, content: bytes) -> bytes:
    """The checksum of a checkpoint and of the settings of its run."""
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    settings = json.dumps(settings, sort_keys=True).encode()
    return hashlib.sha256(settings + content).digest()


def _check_space(model: keras.Model, folder: Path) -> None:
    """Raises an error in time, as HDF5 may crash on a full disk."""
    variables = [*model.variables, *model.optimizer.variables]
    needed = 2**16 + sum(4 * math.prod(v.shape) + 2**12 for v in variables)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"No space left for a checkpoint: it takes up to {needed:,} bytes, and "
            f"{free:,} are free",
            str(folder),
        )
