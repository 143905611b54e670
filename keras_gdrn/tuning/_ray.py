"""Searching on several processes, GPUs and machines: Keras Tuner decides, Ray runs."""

import copy
import itertools
import time
from pathlib import Path
from typing import Any

import keras
import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus

from keras_gdrn.tuning._one_trial import run_one_trial
from keras_gdrn.tuning._progress import Progress
from keras_gdrn.tuning._ray_cluster import Cluster, cluster
from keras_gdrn.tuning._resume import resume, whole_files


def search_on_ray(
    tuner: keras_tuner.Tuner,
    *fit_args: Any,
    address: str | None = None,
    parallel: int | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
    max_retries: int = 3,
    **fit_kwargs: Any,
) -> None:
    """Do what `tuner.search` does, with each trial in a fresh process that Ray runs.

    Any tuner and hypermodel of Keras Tuner will do. The tuner's oracle stays in this
    process and decides; its folder is a usual one, and `results_summary()`,
    `get_best_hyperparameters()`, `get_best_models()` and `reload()` work as ever. The
    oracle gets all that a trial reports, step by step, when the trial ends.

    A trial whose process dies, be it killed, out of memory or with its machine, is run
    again. If the `fit` of its hypermodel has an argument `out`, as that of
    `GaussDerResNetHyperModel`, it gets a folder of the trial for checkpoints, and the
    trial resumes there. If this process dies, or is interrupted by Ctrl-C, the same
    call (of a tuner with the same folder and `overwrite=False`) resumes the search: no
    trial that has ended is run again, and none is lost. Each trial draws random numbers
    of its own, by the seed of the oracle and its number.

    Without an address, Ray runs on this machine, where nothing outside can reach it.
    A cluster runs whatever reaches it, and belongs in a private network.

    Args:
        tuner: Such as `keras_tuner.RandomSearch`, with `directory` in a folder that
            all machines see.
        fit_args, fit_kwargs: As for `tuner.search`. They are sent once, not with
            each trial, and must be picklable: arrays, or a function that makes a
            `tf.data.Dataset`, but no data set.
        address: Address of a cluster, `"auto"` for that of this machine, or `None`.
        parallel: Trials that run at the same time; by default as many as there are
            GPUs or, without GPUs, CPU cores for.
        cpus: CPU cores of a trial. By default its share of this machine, or one core
            in a cluster.
        gpus: GPUs of a trial; it sees no others. A fraction shares one. By default one
            where there are any.
        max_retries: So many times a trial is run again after its process has died;
            then it has failed. (For a trial that ends by an error, see
            `max_retries_per_trial` of Keras Tuner.)

    Raises:
        ImportError: If Ray is not installed: `pip install keras_gdrn[ray]`.
        ValueError: If an argument does not fit, or there are no such resources.
        RuntimeError: As `tuner.search`, after several failed trials in a row; or if a
            machine of the cluster does not see the folder, as soon as a trial is there.

    Example:

    >>> tuner = keras_tuner.RandomSearch(hypermodel, "val_accuracy", max_trials=20)
    >>> search_on_ray(tuner, images, labels, validation_split=0.2, parallel=4)
    >>> tuner.results_summary()
    """
    for name, value, least in (
        ("max_retries", max_retries, 0),
        ("parallel", parallel, 1),
    ):
        if value is not None and value < least:
            raise ValueError(
                f"`{name}` must be at least {least}. Received: {name}={value}"
            )
    tuner.directory = str(Path(tuner.directory).absolute())  # other processes' too
    with (
        cluster(address, parallel, cpus, gpus) as found,
        whole_files(tuner),
        Progress(tuner.oracle) as progress,
    ):
        resume(tuner)
        _Search(tuner, (fit_args, fit_kwargs), found, max_retries, progress).run()


class _Search:
    def __init__(
        self,
        tuner: keras_tuner.Tuner,
        given: tuple,
        found: Cluster,
        max_retries: int,
        progress: Progress,
    ):
        self.oracle, self.cluster, self.ray = tuner.oracle, found, found.ray
        self.max_retries, self.progress = max_retries, progress
        sent = copy.copy(tuner)
        sent.oracle = None  # it stays here
        self.given = self.ray.put((sent, self.oracle.objective, *given))
        self.task = found.task(run_one_trial)
        ended = (TrialStatus.COMPLETED, TrialStatus.FAILED)
        trials = self.oracle.trials.items()
        self.ended = {name: t.status for name, t in trials if t.status in ended}
        self.slots = map(str, itertools.count())
        # Each with how often it has been begun, by what Ray returns of it.
        self.running: dict[Any, tuple[Trial, int]] = {}

    def run(self) -> None:
        try:
            while self._begin_trials() or self.running:
                self.progress.show(len(self.running))
                if not self.running:  # the oracle wants to wait
                    time.sleep(1)
                    continue
                for result in self.ray.wait(list(self.running), timeout=1)[0]:
                    self._finish(result)
            self.progress.show(0)
        finally:
            for result in self.running:
                self.ray.cancel(result, force=True)

    def _begin_trials(self) -> bool:
        """Begins as many as there is room for; whether there may be others later."""
        while len(self.running) < self.cluster.slots():
            # Keras Tuner gives one trial at a time to each name.
            trial = self.oracle.create_trial(next(self.slots))
            if trial.status != TrialStatus.RUNNING:
                return trial.status == TrialStatus.IDLE
            if (
                trial.trial_id in self.ended
            ):  # while it was noted, its driver was killed
                trial.status = self.ended.pop(trial.trial_id)
                self._end(trial)
            else:
                self._begin(trial)
        return True

    def _begin(self, trial: Trial, attempt: int = 1) -> None:
        trial.metrics = Trial(trial.hyperparameters).metrics  # of no earlier attempt
        given = self.given, trial.get_state(), self.oracle.seed
        policy = keras.config.dtype_policy().name
        self.running[self.task.remote(*given, policy)] = trial, attempt

    def _finish(self, result: Any) -> None:
        trial, attempt = self.running.pop(result)
        try:
            reports, state = self.ray.get(result)
        except self.ray.exceptions.RayTaskError as error:  # one that ends the search
            raise (error.cause or error) from error
        except self.ray.exceptions.RayError as error:
            self._died(trial, attempt, str(error).partition("\n")[0][:200])
            return
        for metrics, step in reports:
            self.oracle.update_trial(trial.trial_id, metrics, step=step)
        self._end(Trial.from_state(state))

    def _died(self, trial: Trial, attempt: int, cause: str) -> None:
        self.progress.died(trial, cause)
        if attempt <= self.max_retries:
            self._begin(trial, attempt + 1)
            return
        trial.status = TrialStatus.FAILED
        trial.message = f"Its process has died {attempt} times: {cause}"
        self._end(trial)

    def _end(self, trial: Trial) -> None:
        ongoing = self.oracle.ongoing_trials
        for slot in [s for s, t in ongoing.items() if t.trial_id == trial.trial_id]:
            del ongoing[slot]  # Keras Tuner would do so after it has saved them
        self.oracle.end_trial(trial)
        self.progress.ended(self.oracle.get_trial(trial.trial_id))
