"""The last state of a run, and its log."""

import csv
import dataclasses
import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from keras_gdrn.training import _devices
from keras_gdrn.training._run_folder import SETTINGS, write_whole

LOG = "log.csv"

_SUFFIX = ".weights.h5"  # what Keras wants
_NAME = re.compile(r"epoch-(\d{4,})(?:-step-(\d{6,}))?\.weights\.h5")
_STATE = "state_of_run"  # a group of the file, which Keras leaves alone

# Ends the content and is followed by its SHA-256. HDF5 ignores what is behind its end.
_MARK = b"\nsha256:"
_LENGTH = len(_MARK) + hashlib.sha256().digest_size


@dataclasses.dataclass
class State:
    """What a run needs besides the weights and the optimizer to go on.

    Attributes:
        rows: The row of the log of each epoch.
        metrics, seeds: Those of the epoch that goes on: the model's metrics, and the
            states of its random number generators.
    """

    rows: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    metrics: list[np.ndarray] = dataclasses.field(default_factory=list)
    seeds: list[np.ndarray] = dataclasses.field(default_factory=list)


def checkpoint(folder: Path, epochs: int, step: int = 0) -> Path:
    """The file with what was trained in so many epochs and steps of the next one."""
    in_epoch = f"-step-{step:06d}" if step else ""
    return folder / f"epoch-{epochs:04d}{in_epoch}{_SUFFIX}"


def last_checkpoint(folder: Path) -> tuple[int, int]:
    """Epochs, and steps of the next one, after which the last one was written.

    Raises:
        OSError: If the checkpoint is damaged, or of another run.
        FileExistsError: If there is a log, but no checkpoint.
    """
    found = max(_checkpoints(folder), default=(0, 0))
    if found != (0, 0) and not _is_valid(checkpoint(folder, *found)):
        raise OSError(
            f"{checkpoint(folder, *found)} is damaged or of another run: its checksum "
            f"is not that of its content and of {SETTINGS}. Copy it back from a "
            "backup, or train anew in another folder."
        )
    if found == (0, 0) and (folder / LOG).exists():
        raise FileExistsError(
            f"{folder} has the {LOG} of a run, but its checkpoint is gone: copy it "
            "back from a backup, or choose another folder."
        )
    return found


def save(
    model: keras.Model,
    folder: Path,
    epochs: int,
    step: int,
    rows: list[dict[str, Any]],
) -> None:
    """Puts the state of a training in the place of the one before.

    There is a whole checkpoint at any moment, and its name tells where it was written.

    Raises:
        OSError: If there is no space for it.
    """
    _check_space(model, folder)
    before = _checkpoints(folder)
    partial = folder / f"partial{_SUFFIX}"
    model.save_weights(partial, overwrite=True)
    with h5py.File(partial, "a") as file:
        group = file.create_group(_STATE)
        group["rows"] = json.dumps(rows, default=float)
        for number, metric in enumerate(model.metrics_variables):
            group[f"metrics/{number}"] = keras.ops.convert_to_numpy(metric)
        for number, generator in enumerate(_devices.seed_generators(model)):
            group[f"seeds/{number}"] = _devices.seeds(generator)
    digest = hashlib.sha256(_run(folder) + partial.read_bytes()).digest()
    with partial.open("ab") as file:
        file.write(_MARK + digest)
    os.replace(partial, checkpoint(folder, epochs, step))
    for place, path in before.items():
        if place != (epochs, step):
            path.unlink()


def read_state(path: Path) -> State:
    """The state that is beside the weights and the optimizer."""

    def arrays(name: str) -> list[np.ndarray]:
        parts = file.get(f"{_STATE}/{name}", {})
        return [parts[str(number)][()] for number in range(len(parts))]

    with h5py.File(path) as file:
        rows = json.loads(file[f"{_STATE}/rows"][()])
        return State(rows, arrays("metrics"), arrays("seeds"))


def restore(model: keras.Model, state: State) -> None:
    """Sets metrics and random number generators as they were when it was saved."""
    for metric, value in zip(model.metrics_variables, state.metrics, strict=True):
        metric.assign(value)
    generators = _devices.seed_generators(model)
    for generator, value in zip(generators, state.seeds, strict=True):
        _devices.assign_seeds(generator, value)


def write_log(folder: Path, rows: list[dict[str, Any]]) -> None:
    """A table with a row for each epoch. Cells that a row does not have are empty.

    It is not written before there is a checkpoint, for a log without one tells that the
    checkpoint has been lost.
    """
    if not _checkpoints(folder):
        return
    columns = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(folder / LOG, text.getvalue())


def history(rows: list[dict[str, Any]]) -> keras.callbacks.History:
    """What Keras would return; NaN where an epoch does not have a value."""
    result = keras.callbacks.History()
    columns = dict.fromkeys(name for row in rows for name in row)
    result.history = {n: [row.get(n, math.nan) for row in rows] for n in columns}
    result.epoch = result.history.pop("epoch", [])
    return result


def _run(folder: Path) -> bytes:
    """What a checkpoint belongs to: the settings of its run."""
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    return json.dumps(settings, sort_keys=True).encode()


def _is_valid(path: Path) -> bool:
    content = path.read_bytes()
    digest = hashlib.sha256(_run(path.parent) + content[:-_LENGTH]).digest()
    return content[-_LENGTH:] == _MARK + digest


def _check_space(model: keras.Model, folder: Path) -> None:
    """An error before HDF5 finds the disk full, after which it may crash."""
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


def _checkpoints(folder: Path) -> dict[tuple[int, int], Path]:
    names = ((path, _NAME.fullmatch(path.name)) for path in folder.iterdir())
    return {(int(m[1]), int(m[2] or 0)): path for path, m in names if m}
