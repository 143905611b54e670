"""One trial of a search, in a process of its own: what Ray runs."""

import contextlib
import inspect
import socket
import time
from pathlib import Path
from typing import Any

import keras
import keras_tuner
import numpy as np
from keras_tuner.engine.trial import Trial, TrialStatus

from keras_gdrn.training import lock_folder

_PATIENCE = 120  # seconds for the process that had this trial before to end


class OneTrial(keras_tuner.Oracle):
    """Gives a tuner one trial, and keeps what the tuner reports of it."""

    def __init__(self, trial: Trial, objective: Any, folder: Path):
        super().__init__(objective)
        self.trials[trial.trial_id] = trial
        self.folder = folder
        self.waiting = [trial]
        self.reports: list[tuple[dict[str, float], int]] = []

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
        self.reports.append((values, step))
        return trial

    def end_trial(self, trial: Trial) -> None:
        """Nothing, like `save`: the driver ends the trial, and saves the search."""

    def save(self) -> None:
        pass


def run_one_trial(
    given: tuple, state: dict, seed: int, policy: str
) -> tuple[list, dict]:
    """Runs a trial.

    Args:
        given: The tuner, its objective, the arguments of `tuner.search`.
        state: State of the trial.
        seed: Seed of the search.
        policy: Keras' dtype policy in the driver.

    Returns:
        What was reported, metrics and step each time, and the state at the end.

    Raises:
        keras_tuner.errors.FatalError: What ends the search, not the trial alone.
    """
    tuner, objective, arguments, named = given
    trial = Trial.from_state(state)
    folder = Path(tuner.project_dir)
    own = folder / f"trial_{trial.trial_id}"
    if not (own / "trial.json").exists():
        raise keras_tuner.errors.FatalRuntimeError(
            "The folder of the search must be one that all machines see; "
            f"{socket.gethostname()} does not see it. Received: {folder}"
        )
    keras.config.set_dtype_policy(policy)
    number = int(trial.trial_id) if trial.trial_id.isdecimal() else 0
    of_trial = np.random.SeedSequence([seed, number]).generate_state(1)[0]
    keras.utils.set_random_seed(int(of_trial))
    tuner.oracle = OneTrial(trial, objective, folder)
    tuner.save = lambda: None
    if _keeps_checkpoints(tuner):
        named = {**named, "out": own / "training"}
    _wait_for(own)
    with lock_folder(own):
        tuner.search(*arguments, **named)
    return tuner.oracle.reports, trial.get_state()


def _keeps_checkpoints(tuner: Any) -> bool:
    """Whether the hypermodel takes a folder in which a trial resumes."""
    if tuner.hypermodel is None or getattr(tuner, "executions_per_trial", 1) > 1:
        return False
    return "out" in inspect.signature(tuner.hypermodel.fit).parameters


def _wait_for(folder: Path) -> None:
    """Waits for the process that had this trial before, until its driver was killed."""
    for _ in range(_PATIENCE):
        with contextlib.suppress(BlockingIOError), lock_folder(folder):
            return
        time.sleep(1)
