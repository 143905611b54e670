"""Search on several processes, GPUs and machines: Keras Tuner decides, Ray runs."""

import collections
import contextlib
import copy
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus

from keras_gdrn._checks import check_count, check_number
from keras_gdrn.commands import write_text
from keras_gdrn.tuning._ray_tasks import cluster


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
    """Run `tuner.search` with each trial in a new process, started by Ray.

    The oracle stays in this process, gets the reports of a trial when the trial ends,
    and writes the usual folder. A trial whose process dies is run again; it resumes
    from checkpoints if the `fit` of its hypermodel takes a folder `out` for them, as
    `GaussDerResNetHyperModel` does. If this process dies or is interrupted, the same
    call (of a tuner with the same folder and `overwrite=False`) resumes the search: no
    trial that has ended is run again, and none is lost. The random seed of a trial
    depends on the seed of the oracle and the number of the trial.

    Without an address, Ray runs on this machine and cannot be reached from outside. A
    cluster runs whatever reaches it, and belongs in a private network.

    Args:
        tuner: Any Keras Tuner tuner, of any hypermodel, with `directory` in a folder
            that all machines see.
        fit_args, fit_kwargs: As for `tuner.search`. They are sent once, and must be
            picklable: arrays, or a function that makes a `tf.data.Dataset`.
        address: Address of a cluster, `"auto"` for the one of this machine, or `None`.
        parallel: Trials at the same time; by default as many as the resources allow.
        cpus: CPU cores of a trial. By default one, or its share of this machine if
            `parallel` is given.
        gpus: GPUs of a trial; it sees no others. A fraction shares one. By default one
            if there are any.
        max_retries: How often a trial is run again after its process has died, before
            it fails. (For errors, see Keras Tuner's `max_retries_per_trial`.)

    Raises:
        ImportError: If Ray is not installed: `pip install ray`.
        ValueError: If an argument is invalid, or there are no such resources.
        RuntimeError: As `tuner.search`, after several failed trials in a row; or if a
            machine does not see the folder, as soon as a trial starts there.

    Example:

    >>> tuner = keras_tuner.RandomSearch(hypermodel, "val_accuracy", max_trials=20)
    >>> search_on_ray(tuner, images, labels, validation_split=0.2, parallel=4)
    >>> tuner.results_summary()
    """
    check_number("max_retries", max_retries, whole=True)
    check_count("parallel", parallel)
    tuner.directory = str(Path(tuner.directory).absolute())  # also for other processes
    resources = cluster(address, parallel, cpus, gpus)
    with resources as (ray, task, slots), _patched(tuner.oracle):
        _resume(tuner)
        inputs = ray.put(_inputs(tuner, fit_args, fit_kwargs))
        _Search(tuner.oracle, inputs, ray, task, slots, max_retries).run()


def _inputs(tuner: keras_tuner.Tuner, fit_args: tuple, fit_kwargs: dict) -> tuple:
    """What `run_one_trial` needs of a search."""
    sent = copy.copy(tuner)
    sent.oracle = None  # it stays here
    policy = keras.config.dtype_policy().name
    oracle = tuner.oracle
    return sent, oracle.objective, oracle.seed, policy, fit_args, fit_kwargs


class _Search:
    """Runs the trials of an oracle on Ray, and reports their results to the oracle."""

    def __init__(self, oracle, inputs, ray, task, slots, max_retries):
        self.oracle, self.inputs, self.slots = oracle, inputs, slots
        self.ray, self.task = ray, task
        self.max_retries, self.deaths = max_retries, collections.Counter()
        self.names, self.line = map(str, itertools.count()), ""
        self.running: dict[Any, Trial] = {}  # by Ray's reference to its result

    def run(self) -> None:
        try:
            while self._start_trials() or self.running:
                self._show()
                if not self.running:  # the oracle wants to wait
                    time.sleep(1)
                    continue
                for result in self.ray.wait(list(self.running), timeout=1)[0]:
                    self._finish(result)
            self._show()
        finally:
            for result in self.running:
                self.ray.cancel(result, force=True)
            if sys.stdout.isatty():
                print()  # below the live line

    def _start_trials(self) -> bool:
        """Starts as many as fit; returns whether there may be others later."""
        while len(self.running) < self.slots():
            # A grid may next try the neighbors of a trial that is running.
            for trial in self.running.values():
                trial.hyperparameters.merge(self.oracle.get_space(), overwrite=False)
            # Keras Tuner gives one trial at a time to each name.
            trial = self.oracle.create_trial(next(self.names))
            if trial.status != TrialStatus.RUNNING:
                return trial.status == TrialStatus.IDLE
            self._start(trial)
        return True

    def _start(self, trial: Trial) -> None:
        trial.metrics = Trial(trial.hyperparameters).metrics  # not of earlier attempts
        self.running[self.task.remote(self.inputs, trial.get_state())] = trial

    def _finish(self, result: Any) -> None:
        trial, errors = self.running.pop(result), self.ray.exceptions
        try:
            reports, state = self.ray.get(result)
        except errors.RayTaskError as error:  # one that ends the search
            raise (error.cause or error) from error
        except errors.RayError as error:
            cause = str(error).partition("\n")[0][:200]
            _print(f"Trial {trial.trial_id}: its process died. {cause}")
            self.deaths[trial.trial_id] += 1
            if self.deaths[trial.trial_id] <= self.max_retries:
                return self._start(trial)
            trial.status = TrialStatus.FAILED
            trial.message = f"Its process has died too often: {cause}"
        else:
            for metrics, step in reports:
                self.oracle.update_trial(trial.trial_id, metrics, step=step)
            trial = Trial.from_state(state)
        self.oracle.end_trial(trial)
        if trial.message and trial.status != TrialStatus.COMPLETED:
            _print(f"Trial {trial.trial_id} failed: {trial.message.splitlines()[-1]}")

    def _show(self) -> None:
        """Prints the progress of the search in a line, if it has changed."""
        oracle, ended = self.oracle, len(self.oracle.end_order)
        statuses = [trial.status for trial in oracle.trials.values()]
        failed = statuses.count(TrialStatus.FAILED)
        of = f" of {oracle.max_trials}" if oracle.max_trials else ""
        line = f"Trials: {ended}{of} ended, {len(self.running)} running, {failed} "
        line += f"failed, {self.deaths.total()} processes died"
        if ended > failed:
            best, name = oracle.get_best_trials()[0], oracle.objective.name
            line += f", best {name} {best.score:.4f} (trial {best.trial_id})"
        if line != self.line:
            _print(line, is_live=True)
        self.line = line


def _print(text: str, is_live: bool = False) -> None:
    """Prints a line; on a terminal, the next one replaces a live one."""
    terminal = sys.stdout.isatty()
    end = "" if terminal and is_live else "\n"
    print(f"\r\033[K{text}" if terminal else text, end=end, flush=True)


@contextlib.contextmanager
def _patched(oracle: keras_tuner.Oracle) -> Iterator[None]:
    """The oracle prints nothing and writes files atomically.

    Keras Tuner empties a file before it writes it: killed then, it could not resume.
    """

    def save(what: Any, file: str) -> None:
        write_text(Path(file), json.dumps(what.get_state()))

    (stateful,) = Trial.__bases__  # also the base of tuners and oracles
    before, oracle.verbose, stateful.save = (oracle.verbose, stateful.save), 0, save
    try:
        yield
    finally:
        oracle.verbose, stateful.save = before


def _resume(tuner: keras_tuner.Tuner) -> None:
    """Lets the oracle first recreate the trials that were running."""
    oracle = tuner.oracle
    tuner.save()
    tuner.reload()
    # Killed while it created a trial, it would count the trial and never run it.
    for name in set(oracle.trials) - set(oracle.start_order):
        del oracle.trials[name]
    if isinstance(oracle, keras_tuner.oracles.GridSearchOracle):
        _reload_grid(oracle)
    waiting = oracle.get_state()["retry_queue"]
    for trial in [oracle.trials[name] for name in waiting]:
        if trial.status in ("COMPLETED", "FAILED"):  # then the driver was killed
            waiting.remove(trial.trial_id)
            if trial.trial_id not in oracle.end_order:
                oracle.end_trial(trial)


def _reload_grid(oracle: keras_tuner.oracles.GridSearchOracle) -> None:
    """Restores which points of a grid have been tried; Keras Tuner does not store it.

    While `start_order` is empty, `populate_space` appends a trial to the points of the
    grid whose neighbors are tried next. Here it does so in the order of the grid.
    """
    started, space = oracle.start_order, oracle.get_space().space

    def position(name: str) -> list[int]:
        values = oracle.trials[name].hyperparameters.values
        return [  # of the values in the order of a grid: the default comes first
            [hp.default, *hp.values].index(values[hp.name])
            for hp in space
            if hp.name in values
        ]

    for name in sorted(started, key=position):
        oracle.start_order = []
        oracle.populate_space(name)
    oracle.start_order = started
