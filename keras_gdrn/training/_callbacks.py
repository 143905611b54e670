"""What happens around each epoch of `fit`."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gdrn.training import _devices, _processes
from keras_gdrn.training._checkpoint import restore_state, save
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
    """Seeds dropout by the epoch, so that what was trained before has no part in it.

    (Keras does not save the state of its random number generators.)

    Args:
        seed: The seed of the run.
        state: Of a checkpoint that was written in the epoch that goes on.
    """

    def __init__(self, seed: int, state: dict[str, Any] | None = None):
        super().__init__()
        self.seed, self.state = seed, state

    def on_epoch_begin(self, epoch, logs=None):
        model, state, self.state = self.model, self.state, None
        if state is not None:
            restore_state(model, state)
            return
        for number, generator in enumerate(_devices.seed_generators(model)):
            devices = len(_devices.seeds(generator))
            seed = np.random.SeedSequence([self.seed, epoch, number])
            words = seed.generate_state(2 * devices).reshape(-1, 2)
            _devices.assign_seeds(generator, words)


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
    """Ends each epoch with a row in the log and, if all is finite, a checkpoint.

    Args:
        folder: Folder of the run.
        minutes: An epoch that takes longer has checkpoints in between.
        steps: Steps of an epoch.
    """

    def __init__(self, folder: Path, minutes: float, steps: int):
        super().__init__()
        self.folder, self.seconds, self.steps = folder, 60 * minutes, steps

    def on_train_begin(self, logs=None):
        self.last = time.perf_counter()
        # The epoch that goes on has only what is left of its steps.
        self.skipped = self.steps - self.params["steps"]

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    # Not at the end of a batch: Keras would wait for the losses of each.
    def on_train_batch_begin(self, batch, logs=None):
        if batch and time.perf_counter() - self.last >= self.seconds:
            self._save(self.epoch, self.skipped + batch, None)

    def on_epoch_end(self, epoch, logs=None):
        # In this order: a row without its checkpoint is dropped on resuming.
        append_row(self.folder, {"epoch": epoch, **(logs or {})})
        self._save(epoch + 1, 0, logs)

    def _save(self, epochs: int, step: int, logs: Mapping[str, Any] | None) -> None:
        model = self.model
        if _is_finite(model, logs):
            with _processes.alone():
                save(model, self.folder, epochs, step)
        self.last = time.perf_counter()


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
