"""What happens in the course of a run."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gdrn.training import _devices, _processes
from keras_gdrn.training._checkpoint import State, restore, save, write_log
from keras_gdrn.training._time_limit import TimeLimit


class Run(keras.callbacks.Callback):
    """Seeds each epoch, and ends it with a checkpoint and a row in the log.

    Args:
        seed: The seed of the run.
        steps: Steps of an epoch.
        state: Of the last checkpoint.
        limit: The time there is.
        check_finite: Whether to stop by an error if the loss or a weight is not finite.
        folder: Folder of the run; in other processes than the first one `None`.
        minutes: An epoch that takes longer has checkpoints in between.
    """

    def __init__(
        self,
        seed: int,
        steps: int,
        state: State,
        limit: TimeLimit | None,
        check_finite: bool,
        folder: Path | None,
        minutes: float,
    ):
        super().__init__()
        self.seed, self.steps, self.state, self.rows = seed, steps, state, state.rows
        self.limit, self.check_finite = limit, check_finite
        self.folder, self.seconds = folder, 60 * minutes

    def on_train_begin(self, logs=None):
        self.saved = time.perf_counter()
        # The epoch that goes on has only what is left of its steps.
        self.skipped = self.steps - self.params["steps"]

    def on_epoch_begin(self, epoch, logs=None):
        self.start, self.epoch = time.perf_counter(), epoch
        if self.skipped:
            restore(self.model, self.state)
        else:
            self._seed(epoch)

    def _seed(self, epoch: int) -> None:
        """Seeds dropout by the epoch: what was trained before has no part in it."""
        for number, generator in enumerate(_devices.seed_generators(self.model)):
            devices = len(_devices.seeds(generator))
            seed = np.random.SeedSequence([self.seed, epoch, number])
            words = seed.generate_state(2 * devices).reshape(-1, 2)
            _devices.assign_seeds(generator, words)

    # Not at the end of a batch: Keras would wait for the losses of each.
    def on_train_batch_begin(self, batch, logs=None):
        is_late = time.perf_counter() - self.saved >= self.seconds
        if self.folder and batch and is_late and self._is_finite({}):
            self._save(self.epoch, self.skipped + batch)

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.start
        logs = {} if logs is None else logs
        logs["seconds"] = seconds  # for the callbacks that follow, too
        is_finite = self._is_finite(logs)
        if self.check_finite and not is_finite:
            raise FloatingPointError(
                f"The loss or a weight is not finite in epoch {epoch + 1}: "
                f"{logs}. Try a lower learning rate; the last good checkpoint, if "
                "there is a folder `out`, is that of the epoch before."
            )
        self.rows.append({"epoch": epoch, **logs})
        if self.folder and is_finite:
            self._save(epoch + 1)
        if self.folder:
            write_log(self.folder, self.rows)
        if self.limit is not None:
            self._stop_in_time(self.limit, seconds)

    def _save(self, epochs: int, step: int = 0) -> None:
        assert self.folder is not None
        with _processes.alone():
            save(self.model, self.folder, epochs, step, self.rows)
        self.saved = time.perf_counter()

    def _is_finite(self, logs: Mapping[str, Any]) -> bool:
        return bool(np.isfinite(logs.get("loss", 0.0))) and all(
            np.isfinite(weight).all() for weight in self.model.get_weights()
        )

    def _stop_in_time(self, limit: TimeLimit, seconds: float) -> None:
        limit.took(seconds)
        if _processes.from_first_process(lambda: limit.is_reached(seconds)):
            self.model.stop_training = True
