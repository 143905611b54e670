"""The last state of a run: weights, optimizer, and where in which epoch it is."""

import errno
import hashlib
import json
import math
import os
import re
import shutil
from pathlib import Path

import h5py
import keras
import numpy as np

from keras_gdrn.training import _devices
from keras_gdrn.training._run_folder import SETTINGS

_SUFFIX = ".weights.h5"  # what Keras wants
_NAME = re.compile(r"epoch-(\d{4,})(?:-step-(\d{6,}))?\.weights\.h5")
_STATE = "state_in_epoch"  # a group of the file, which Keras leaves alone

# Ends the content and is followed by its SHA-256. HDF5 ignores what is behind its end.
_MARK = b"\nsha256:"
_LENGTH = len(_MARK) + hashlib.sha256().digest_size


def checkpoint(folder: Path, epochs: int, step: int = 0) -> Path:
    """The file with what was trained in so many epochs and steps of the next one."""
    in_epoch = f"-step-{step:06d}" if step else ""
    return folder / f"epoch-{epochs:04d}{in_epoch}{_SUFFIX}"


def last_checkpoint(folder: Path) -> tuple[int, int]:
    """Epochs, and steps of the next one, after which the last one was written.

    Raises:
        OSError: If the checkpoint is damaged, or of another run.
    """
    found = max(_checkpoints(folder), default=(0, 0))
    if found != (0, 0) and not _is_valid(checkpoint(folder, *found)):
        raise OSError(
            f"{checkpoint(folder, *found)} is damaged or of another run: its checksum "
            f"is not that of its content and of {SETTINGS}. Copy it back from a "
            "backup, or train anew in another folder."
        )
    return found


def save(model: keras.Model, folder: Path, epochs: int, step: int = 0) -> None:
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
        for name, value in _state(model).items():
            group[name] = value
    digest = hashlib.sha256(_run(folder) + partial.read_bytes()).digest()
    with partial.open("ab") as file:
        file.write(_MARK + digest)
    os.replace(partial, checkpoint(folder, epochs, step))
    for place, path in before.items():
        if place != (epochs, step):
            path.unlink()


def read_state(path: Path) -> dict[str, np.ndarray]:
    """What an epoch that goes on needs besides weights and optimizer."""
    with h5py.File(path) as file:
        return {name: value[()] for name, value in file[_STATE].items()}


def restore_state(model: keras.Model, state: dict[str, np.ndarray]) -> None:
    """Sets metrics and random number generators as they were when it was saved."""
    for number, metric in enumerate(model.metrics_variables):
        metric.assign(state[f"metric{number}"])
    for number, generator in enumerate(_devices.seed_generators(model)):
        _devices.assign_seeds(generator, state[f"seed{number}"])


def _state(model: keras.Model) -> dict[str, np.ndarray]:
    values = {}
    for number, metric in enumerate(model.metrics_variables):
        values[f"metric{number}"] = keras.ops.convert_to_numpy(metric)
    for number, generator in enumerate(_devices.seed_generators(model)):
        values[f"seed{number}"] = _devices.seeds(generator)
    return values


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
