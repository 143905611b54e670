"""One trial of a search, in a process of its own: what Ray runs."""

import contextlib
import inspect
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import keras_tuner
import numpy as np
from keras_tuner.engine.trial import Trial, TrialStatus

from keras_gdrn.training import lock_folder

_PATIENCE = 120.0  # seconds for the process that had this trial before to end


class OneTrial(keras_tuner.Oracle):
    """Gives a tuner one trial, and passes on what the tuner reports of it.

    Args:
        trial: The `Trial`, which has a folder in `folder`.
        objective: Objective of the search.
        folder: Folder of the search.
        report: Function of the metrics of a step and the step, or of the state of the
            trial at its end.
    """

    def __init__(self, trial: Trial, objective: Any, folder: Path, report: Callable):
        super().__init__(objective)
        self.trials[trial.trial_id] = trial
        self.folder = folder
        self.report = report
        self.waiting = [trial]

    def create_trial(self, tuner_id: str) -> Trial:
        if self.waiting:
            return self.waiting.pop()
        return Trial(self.get_space(), status=TrialStatus.STOPPED)

    def get_trial(self, trial_id: str) -> Trial:
        """This trial, or another one as it was left: one of Hyperband's goes on."""
        if trial_id not in self.trials:
            file = self.folder / f"trial_{trial_id}" / "trial.json"
            self.trials[trial_id] = Trial.load(str(file))
        return self.trials[trial_id]

    def update_trial(self, trial_id: str, metrics: dict, step: int = 0) -> Trial:
        trial = self.trials[trial_id]
        values = {name: float(value) for name, value in metrics.items()}
        for name, value in values.items():
            trial.metrics.update(name, value, step)
        self.report((values, step))
        return trial

    def end_trial(self, trial: Trial) -> None:
        self.report(trial.get_state())

    def save(self) -> None:
        """Nothing: the driver keeps the state of the search."""


def run_one_trial(given: tuple, state: dict, seed: int, keras_state: dict) -> Iterator:
    """Runs a trial, and yields what it reports; see `OneTrial`.

    The trial runs in a thread, so that its reports arrive while it does.

    Args:
        given: The tuner, its objective, the arguments of `tuner.search`.
        state: State of the trial.
        seed: Seed of the search.
        keras_state: What `keras_state` has returned in the driver.

    Raises:
        keras_tuner.errors.FatalError: What ends the search, not the trial alone.
    """
    reports = queue.SimpleQueue()

    def run() -> None:
        try:
            _run(given, state, seed, keras_state, reports.put)
            reports.put(None)
        except BaseException as error:
            reports.put(error)

    threading.Thread(target=run, daemon=True).start()
    while (report := reports.get()) is not None:
        if isinstance(report, BaseException):
            raise report
        yield report


def keras_state() -> dict[str, str]:
    """Settings of Keras, for the processes of the trials."""
    return {
        "set_dtype_policy": keras.config.dtype_policy().name,
        "set_image_data_format": keras.config.image_data_format(),
    }


def _run(
    given: tuple, state: dict, seed: int, settings: dict, report: Callable
) -> None:
    tuner, objective, arguments, named = given
    trial = Trial.from_state(state)
    folder = Path(tuner.project_dir)
    own = folder / f"trial_{trial.trial_id}"
    if not (own / "trial.json").exists():
        raise keras_tuner.errors.FatalRuntimeError(
            f"The folder of the search must be one that all machines see; "
            f"{socket.gethostname()} does not see it. Received: {folder}"
        )
    for name, value in settings.items():
        getattr(keras.config, name)(value)
    number = int(trial.trial_id) if trial.trial_id.isdecimal() else 0
    of_trial = np.random.SeedSequence([seed, number]).generate_state(1)[0]
    keras.utils.set_random_seed(int(of_trial))
    tuner.oracle = OneTrial(trial, objective, folder, report)
    tuner.save = lambda: None
    if _keeps_checkpoints(tuner):
        named = {**named, "out": own / "training"}
    with _alone_in(own):
        tuner.search(*arguments, **named)


def _keeps_checkpoints(tuner: Any) -> bool:
    """Whether the hypermodel takes a folder from which a trial goes on."""
    if tuner.hypermodel is None or getattr(tuner, "executions_per_trial", 1) > 1:
        return False
    return "out" in inspect.signature(tuner.hypermodel.fit).parameters


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Waits for a process that is about to end: its driver was killed."""
    end = time.monotonic() + _PATIENCE
    with contextlib.ExitStack() as held:
        while True:
            try:
                held.enter_context(lock_folder(folder))
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)
        yield
