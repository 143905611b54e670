"""The last state of a run: weights and optimizer, after so many epochs."""

import os
import re
from pathlib import Path

import keras

from keras_gdrn.training._files import append_checksum, has_valid_checksum

_SUFFIX = ".weights.h5"  # what Keras wants
_NAME = re.compile(r"epoch-(\d{4,})\.weights\.h5")


def checkpoint(folder: Path, epochs: int) -> Path:
    """The file with what was trained in so many epochs."""
    return folder / f"epoch-{epochs:04d}{_SUFFIX}"


def trained_epochs(folder: Path) -> int:
    """After how many epochs the last checkpoint was written; 0 if there is none.

    Raises:
        OSError: If the checkpoint is damaged.
    """
    epochs = max(_checkpoints(folder), default=0)
    if epochs and not has_valid_checksum(checkpoint(folder, epochs)):
        raise OSError(
            f"{checkpoint(folder, epochs)} is damaged: its checksum is not that of its "
            "content. Copy it back from a backup, or train anew in another folder."
        )
    return epochs


def save(model: keras.Model, folder: Path, epochs: int) -> None:
    """Puts the weights and the optimizer's state in the place of those before.

    There is a whole checkpoint at any moment, and its name tells its epoch.
    """
    before = _checkpoints(folder)
    partial = folder / f"partial{_SUFFIX}"
    model.save_weights(partial, overwrite=True)
    append_checksum(partial)
    os.replace(partial, checkpoint(folder, epochs))
    for epoch, path in before.items():
        if epoch != epochs:
            path.unlink()


def _checkpoints(folder: Path) -> dict[int, Path]:
    names = ((path, _NAME.fullmatch(path.name)) for path in folder.iterdir())
    return {int(match[1]): path for path, match in names if match}
