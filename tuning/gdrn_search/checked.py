"""Tuners that notice damaged checkpoints."""

import hashlib
from pathlib import Path

import keras
import keras_tuner
from keras_tuner.engine.trial import Trial


class Checked:
    """A tuner whose trials leave a checksum beside their checkpoint.

    It is compared before a checkpoint is loaded: that of the best trial, and that of
    the trial from which one of Hyperband's goes on.
    """

    def on_trial_begin(self, trial):
        super().on_trial_begin(trial)
        _check_origin(self, trial)

    def run_trial(self, trial, *args, **kwargs):
        results = super().run_trial(trial, *args, **kwargs)
        file = _checkpoint(self, trial.trial_id)
        _beside(file).write_text(_checksum(file), encoding="utf-8")
        return results

    def load_model(self, trial: Trial) -> keras.Model:
        _check_origin(self, trial)
        _check(self, trial.trial_id)
        return super().load_model(trial)


def _check_origin(tuner: keras_tuner.Tuner, trial: Trial) -> None:
    origin = trial.hyperparameters.values.get("tuner/trial_id")
    if origin is not None:
        _check(tuner, origin)


def _check(tuner: keras_tuner.Tuner, trial_id: str) -> None:
    file = _checkpoint(tuner, trial_id)
    known = _beside(file).read_bytes() if _beside(file).exists() else b""
    if not file.exists() or _checksum(file).encode() != known:
        raise OSError(
            f"{file} must be the checkpoint of a trial, and is missing or damaged: its "
            f"checksum is not that in {_beside(file).name}. Copy both back from a "
            "backup, or search anew in another folder"
        )


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _beside(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")


def _checkpoint(tuner: keras_tuner.Tuner, trial_id: str) -> Path:
    return Path(tuner.get_trial_dir(trial_id), "checkpoint.weights.h5")
