"""Tuners that notice damaged checkpoints."""

from pathlib import Path

import keras
import keras_tuner
from keras_tuner.engine.trial import Trial

from keras_gdrn.training._files import append_checksum, has_valid_checksum


class Checked:
    """A tuner whose trials leave checkpoints with a checksum.

    It is compared before a checkpoint is loaded: that of the best trial, and that of
    the trial from which one of Hyperband's goes on.
    """

    def on_trial_begin(self, trial):
        super().on_trial_begin(trial)
        _check_origin(self, trial)

    def run_trial(self, trial, *args, **kwargs):
        results = super().run_trial(trial, *args, **kwargs)
        append_checksum(_checkpoint(self, trial.trial_id))
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
    if not file.exists() or not has_valid_checksum(file):
        raise OSError(
            f"{file} must be the checkpoint of a trial, and is missing or damaged: it "
            "does not end with the checksum of its content. Copy it back from a "
            "backup, or search anew in another folder"
        )


def _checkpoint(tuner: keras_tuner.Tuner, trial_id: str) -> Path:
    return Path(tuner.get_trial_dir(trial_id), "checkpoint.weights.h5")
