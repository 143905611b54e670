"""Searching on several processes, GPUs and machines: Keras Tuner decides, Ray runs."""

import contextlib
import copy
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus

from keras_gdrn.training import OutOfTime, TimeLimit
from keras_gdrn.tuning._one_trial import keras_state, run_one_trial
from keras_gdrn.tuning._progress import Progress
from keras_gdrn.tuning._ray_cluster import Cluster, cluster
from keras_gdrn.tuning._resumed import forget_unbegun, reload_grid, whole_files

_ENDED = (TrialStatus.COMPLETED, TrialStatus.FAILED)


def search_on_ray(
    tuner: keras_tuner.Tuner,
    *fit_args: Any,
    address: str | None = None,
    parallel: int | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
    max_retries: int = 3,
    max_minutes: float | TimeLimit | None = None,
    **fit_kwargs: Any,
) -> None:
    """Do what `tuner.search` does, with each trial in a fresh process that Ray runs.

    Any tuner and hypermodel of Keras Tuner will do. The tuner's oracle stays in this
    process and decides; its folder is a usual one, and `results_summary()`,
    `get_best_hyperparameters()`, `get_best_models()` and `reload()` work as ever.

    A trial whose process dies, be it killed, out of memory or with its machine, is run
    again. If the `fit` of its hypermodel has an argument `out`, as that of
    `GaussDerResNetHyperModel`, it gets a folder of the trial for checkpoints, and the
    trial goes on from there. If this process dies, or is interrupted by Ctrl-C, the
    same call (of a tuner with the same folder and `overwrite=False`) goes on: no trial
    that has ended is run again, and none is lost. Each trial draws random numbers of
    its own, by the seed of the oracle and its number.

    Without an address, Ray runs on this machine, where nothing outside can reach it.
    A cluster runs whatever reaches it, and belongs in a private network.

    Args:
        tuner: Such as `keras_tuner.RandomSearch`, with `directory` in a folder that
            all machines see.
        *fit_args, **fit_kwargs: As for `tuner.search`. They are sent once, not with
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
        max_minutes: Begin no trial that would end later, judged by the longest so far.

    Raises:
        ImportError: If Ray is not installed: `pip install keras_gdrn[ray]`.
        ValueError: If an argument does not fit, or there are no such resources.
        FileNotFoundError: If a machine of the cluster does not see the folder.
        OutOfTime: If `max_minutes` ended before the search did; the same call goes on.
        RuntimeError: As `tuner.search`, after several failed trials in a row.

    Example:

    >>> tuner = keras_tuner.RandomSearch(hypermodel, "val_accuracy", max_trials=20)
    >>> search_on_ray(tuner, images, labels, validation_split=0.2, parallel=4)
    >>> tuner.results_summary()
    """
    if max_retries < 0:
        raise ValueError(
            f"`max_retries` must be at least 0. Received: max_retries={max_retries}"
        )
    limit = max_minutes
    if not isinstance(limit, TimeLimit):
        limit = TimeLimit(limit)
    tuner.directory = str(Path(tuner.directory).absolute())  # other processes' too
    given = (fit_args, fit_kwargs)
    with (
        cluster(address, parallel, cpus, gpus, given) as found,
        whole_files(tuner),
        Progress(tuner.oracle) as progress,
    ):
        found.check_folder(Path(tuner.project_dir))
        _Search(tuner, given, found, limit, max_retries, progress).run()


@dataclasses.dataclass
class _Run:
    """A trial that is being run, for the `attempt`-th time."""

    trial: Trial
    slot: str
    begun: float
    attempt: int = 1
    state: dict | None = None  # at its end


class _Search:
    def __init__(
        self,
        tuner: keras_tuner.Tuner,
        given: tuple,
        found: Cluster,
        limit: TimeLimit,
        max_retries: int,
        progress: Progress,
    ):
        self.oracle = tuner.oracle
        self.cluster = found
        self.limit = limit
        self.max_retries = max_retries
        self.progress = progress
        sent = copy.copy(tuner)
        sent.oracle = None  # it is never asked there
        self.given = found.put((sent, self.oracle.objective, *given))
        self.task = found.task(run_one_trial)
        forget_unbegun(self.oracle)
        reload_grid(self.oracle)
        self.ended = {
            name: trial.status
            for name, trial in self.oracle.trials.items()
            if trial.status in _ENDED
        }
        self.running: dict[Any, _Run] = {}

    def run(self) -> None:
        try:
            while self._begin_trials() or self.running:
                if not self.running:  # the oracle wants to wait
                    time.sleep(1)
                for reports in self.cluster.wait(list(self.running)):
                    self._next_report(reports)
                self.progress.show(len(self.running))
            if self._has_no_time():
                raise OutOfTime("Out of time")
        finally:
            self.cluster.cancel(list(self.running))

    def _begin_trials(self) -> bool:
        """Begins as many as there is room for; whether there may be others later."""
        while len(self.running) < self.cluster.slots():
            if self._has_no_time():
                return False
            slot = self._free_slot()
            trial = self.oracle.create_trial(slot)
            if trial.status != TrialStatus.RUNNING:
                return trial.status == TrialStatus.IDLE
            if trial.trial_id in self.ended:
                self._end_again(trial, slot)
            else:
                self._begin(_Run(trial, slot, time.perf_counter()))
        return True

    def _has_no_time(self) -> bool:
        return self.limit.is_reached() and self.oracle.remaining_trials() != 0

    def _free_slot(self) -> str:
        """A name for Keras Tuner, which gives one trial at a time to each."""
        taken = {run.slot for run in self.running.values()}
        # At first those of a search that was interrupted in this process.
        names = [*self.oracle.ongoing_trials, *map(str, range(len(taken) + 1))]
        return next(name for name in names if name not in taken)

    def _end_again(self, trial: Trial, slot: str) -> None:
        """A trial that had ended just before the driver was killed."""
        trial.status = self.ended.pop(trial.trial_id)
        if trial.trial_id in self.oracle.end_order:
            del self.oracle.ongoing_trials[slot]
            self.oracle.save()
        else:
            self._end(trial)

    def _begin(self, run: _Run) -> None:
        trial = run.trial
        trial.metrics = Trial(trial.hyperparameters).metrics  # of no earlier attempt
        arguments = (trial.get_state(), self.oracle.seed, keras_state())
        self.running[self.task.remote(self.given, *arguments)] = run

    def _next_report(self, reports: Iterator) -> None:
        run = self.running[reports]
        try:
            report = self.cluster.get(next(reports))
        except (StopIteration, self.cluster.died) as reason:
            del self.running[reports]
            self._is_over(run, reason)
            return
        if isinstance(report, dict):
            run.state = report
        else:
            metrics, step = report
            self.oracle.update_trial(run.trial.trial_id, metrics, step=step)

    def _is_over(self, run: _Run, reason: Exception) -> None:
        """A process has ended, or died: the same if the trial had ended before."""
        if run.state is not None:
            self.limit.took(time.perf_counter() - run.begun)
            self._end(Trial.from_state(run.state))
            return
        name, cause = run.trial.trial_id, str(reason).partition("\n")[0][:200]
        self.progress.died(name, cause)
        if run.attempt <= self.max_retries:
            self._begin(dataclasses.replace(run, attempt=run.attempt + 1))
            return
        run.trial.status = TrialStatus.FAILED
        run.trial.message = f"Its process has died {run.attempt} times: {cause}"
        self._end(run.trial)

    def _end(self, trial: Trial) -> None:
        with contextlib.ExitStack() as after:
            # Keras Tuner's own save still has the trial among those that go on.
            after.callback(self.oracle.save)
            self.oracle.end_trial(trial)
        self.progress.ended(self.oracle.get_trial(trial.trial_id))
