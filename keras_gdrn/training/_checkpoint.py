"""The last state of a run: weights and optimizer, after so many epochs."""

import errno
import json
import math
import os
import re
import shutil
from pathlib import Path

import keras

from keras_gdrn.training._files import SETTINGS, append_checksum, has_valid_checksum

_SUFFIX = ".weights.h5"  # what Keras wants
_NAME = re.compile(r"epoch-(\d{4,})\.weights\.h5")


def checkpoint(folder: Path, epochs: int) -> Path:
    """The file with what was trained in so many epochs."""
    return folder / f"epoch-{epochs:04d}{_SUFFIX}"


def trained_epochs(folder: Path) -> int:
    """After how many epochs the last checkpoint was written; 0 if there is none.

    Raises:
        OSError: If the checkpoint is damaged, or of another run.
    """
    epochs = max(_checkpoints(folder), default=0)
    if epochs and not has_valid_checksum(checkpoint(folder, epochs), _run(folder)):
        raise OSError(
            f"{checkpoint(folder, epochs)} is damaged or of another run: its checksum "
            f"is not that of its content and of {SETTINGS}. Copy it back from a "
            "backup, or train anew in another folder."
        )
    return epochs


def save(model: keras.Model, folder: Path, epochs: int) -> None:
    """Puts the weights and the optimizer's state in the place of those before.

    There is a whole checkpoint at any moment, and its name tells its epoch.

    Raises:
        OSError: If there is no space for it.
    """
    _check_space(model, folder)
    before = _checkpoints(folder)
    partial = folder / f"partial{_SUFFIX}"
    model.save_weights(partial, overwrite=True)
    append_checksum(partial, _run(folder))
    os.replace(partial, checkpoint(folder, epochs))
    for epoch, path in before.items():
        if epoch != epochs:
            path.unlink()


def _run(folder: Path) -> bytes:
    """What a checkpoint belongs to: the settings of its run."""
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    return json.dumps(settings, sort_keys=True).encode()


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


def _checkpoints(folder: Path) -> dict[int, Path]:
    names = ((path, _NAME.fullmatch(path.name)) for path in folder.iterdir())
    return {int(match[1]): path for path, match in names if match}
