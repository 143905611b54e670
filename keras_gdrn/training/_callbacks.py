"""What happens around each epoch of `fit`."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gdrn.training import _devices, _processes
from keras_gdrn.training._checkpoint import save
from keras_gdrn.training._log import append_row
from keras_gdrn.training._time_limit import TimeLimit


class EpochSeconds(keras.callbacks.Callback):
    """Logs how long each epoch took, for the callbacks that follow."""

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["seconds"] = time.perf_counter() - self.start


class EpochSeeds(keras.callbacks.Callback):
    """Seeds dropout by the epoch: a run that was interrupted draws the same numbers.

    (Keras does not save the state of its random number generators.)
    """

    def __init__(self, seed: int):
        super().__init__()
        self.seed = seed

    def on_epoch_begin(self, epoch, logs=None):
        for number, state in enumerate(self._states()):
            seed = np.random.SeedSequence([self.seed, epoch, number])
            _devices.assign_seed(state, seed)

    def _states(self) -> list[keras.Variable]:
        variables = self.model.non_trainable_variables
        return [v for v in variables if v.name == "seed_generator_state"]


class FiniteLoss(keras.callbacks.Callback):
    """Stops by an error after an epoch whose loss or weights are not finite."""

    def on_epoch_end(self, epoch, logs=None):
        if not _is_finite(self.model, logs):
            raise FloatingPointError(
                f"The loss or a weight is not finite in epoch {epoch + 1}: "
                f"{logs}. Try a lower learning rate; the last good checkpoint, if "
                "there is a folder `out`, is that of the epoch before."
            )


class Record(keras.callbacks.Callback):
    """Ends each epoch with a row in the log and, if all is finite, a checkpoint."""

    def __init__(self, folder: Path):
        super().__init__()
        self.folder = folder

    def on_epoch_end(self, epoch, logs=None):
        # In this order: a row without its checkpoint is dropped when the run goes on.
        append_row(self.folder, {"epoch": epoch, **(logs or {})})
        if _is_finite(self.model, logs):
            with _processes.alone():
                save(self.model, self.folder, epoch + 1)


def _is_finite(model: keras.Model, logs: Mapping[str, Any] | None) -> bool:
    loss = (logs or {}).get("loss", 0.0)
    return bool(np.isfinite(loss)) and all(
        np.isfinite(weight).all() for weight in model.get_weights()
    )


class StopInTime(keras.callbacks.Callback):
    """Stops after an epoch if another one like it would not end in time."""

    def __init__(self, limit: TimeLimit):
        super().__init__()
        self.limit = limit

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.start
        self.limit.took(seconds)
        if _processes.from_first_process(lambda: self.limit.is_reached(seconds)):
            self.model.stop_training = True
