"""The callback that seeds, logs and saves a run."""

import contextlib
import dataclasses
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gdrn.training._checkpoint import State, restore, save, seed_generator_states


@dataclasses.dataclass(eq=False)
class Run(keras.callbacks.Callback):
    """Seeds each epoch, and ends it with a checkpoint and a row in the log."""

    seed: int
    steps: int  # of an epoch
    state: State  # of the last checkpoint; rows are added to it
    folder: Path | None
    minutes: float  # longer epochs have checkpoints in between
    check_finite: bool

    def __post_init__(self):
        super().__init__()
        self.terminated = False

    @contextlib.contextmanager
    def saved_when_terminated(self) -> Iterator[None]:
        """On SIGTERM, the step is completed and saved before the process exits."""
        is_main = threading.current_thread() is threading.main_thread()
        if self.folder is None or not is_main:  # others cannot receive signals
            yield
            return

        def terminate(*_):
            self.terminated = True

        before = signal.signal(signal.SIGTERM, terminate)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
        self._exit_if_terminated()  # in the last step

    def on_train_begin(self, logs=None):
        self.saved = time.perf_counter()
        # An epoch that is resumed has only its remaining steps.
        self.skipped = self.steps - self.params["steps"]

    def on_epoch_begin(self, epoch, logs=None):
        self.start, self.epoch = time.perf_counter(), epoch
        if self.skipped:
            restore(self.model, self.state)
            return
        # Of dropout, which must not depend on what was trained before.
        for number, state in enumerate(seed_generator_states(self.model)):
            seed = np.random.SeedSequence([self.seed, epoch, number])
            state.assign(seed.generate_state(2).astype(state.dtype))

    # Not at the end of a batch: Keras would wait for the losses of each.
    def on_train_batch_begin(self, batch, logs=None):
        is_late = time.perf_counter() - self.saved >= 60 * self.minutes
        is_due = batch and (is_late or self.terminated)
        if is_due and self.folder and self._is_finite({}):
            self._save(self.epoch * self.steps + self.skipped + batch)
        self._exit_if_terminated()

    def _exit_if_terminated(self) -> None:
        if self.terminated:
            raise SystemExit(128 + signal.SIGTERM)

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        # For the callbacks that follow, too.
        logs["seconds"] = time.perf_counter() - self.start
        is_finite = self._is_finite(logs)
        if self.check_finite and not is_finite:
            raise FloatingPointError(
                f"The loss or a weight is not finite in epoch {epoch + 1}: "
                f"{logs}. Try a lower learning rate. If there is a folder `out`, it "
                "keeps the last good checkpoint."
            )
        self.state.rows.append({"epoch": epoch, **logs})
        if is_finite:
            self._save((epoch + 1) * self.steps)

    def finish(self) -> None:
        """Saves that a callback has stopped the training, and the weights it left."""
        if self.model.stop_training and self._is_finite(self.state.rows[-1]):
            self._save((self.state.rows[-1]["epoch"] + 1) * self.steps, stopped=True)

    def _save(self, step: int, stopped: bool = False) -> None:
        if self.folder is None:
            return
        save(self.model, self.folder, step, self.state.rows, stopped)
        self.saved = time.perf_counter()

    def _is_finite(self, logs: Mapping[str, Any]) -> bool:
        return bool(np.isfinite(logs.get("loss", 0.0))) and all(
            np.isfinite(weight).all() for weight in self.model.get_weights()
        )
