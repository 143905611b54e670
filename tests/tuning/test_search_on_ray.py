"""What the driver does: trials that die, a driver that dies, oracles of every kind.

Ray is replaced by calls in this process; tests/tuning/test_ray.py has it.
"""

import contextlib
import itertools
import json
import math
import os
import random
import sys
import types
from pathlib import Path
from unittest import mock

import keras
import keras_tuner
import numpy as np
import pytest

from keras_gdrn.tuning import _ray, _ray_tasks, search_on_ray

cloudpickle = pytest.importorskip("ray.cloudpickle")
pytestmark = [
    pytest.mark.filterwarnings("ignore:The use case of calling:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


class Died(Exception):
    """The process of a trial."""


class Failed(Died):
    """An error in the process of a trial."""

    cause = property(lambda self: self.args[0])


class Killed(BaseException):
    """The driver, by a signal that it cannot catch."""


class Processes:
    """Instead of Ray: what is sent is pickled, and processes die as often as told."""

    exceptions = types.SimpleNamespace(RayError=Died, RayTaskError=Failed)

    def __init__(self, deaths=0, share=0.5):
        self.deaths, self.share, self.random = deaths, share, random.Random(deaths)
        self.sent, self.cancel = [], mock.Mock()

    def put(self, given):
        self.sent.append(cloudpickle.dumps(given))
        return self.sent[-1]

    def remote(self, given, state):
        def fresh():
            keras.config.set_dtype_policy("float32")
            with contextlib.chdir("/"):
                return _ray_tasks.run_one_trial(cloudpickle.loads(given), state)

        return fresh

    def get(self, result):
        try:
            found = result()
        except Exception as error:
            raise Failed(error) from error
        if self.deaths and self.random.random() < self.share:
            self.deaths -= 1
            raise Died("a signal\nand more")
        return found

    @staticmethod
    def wait(results, timeout):
        return results[:1], results[1:]


@pytest.fixture(autouse=True)
def processes(monkeypatch):
    """Searches with these processes."""
    monkeypatch.setattr(_ray.time, "sleep", lambda seconds: None)

    def install(slots=2, **options):
        found = Processes(**options)
        manager = contextlib.nullcontext((found, found, lambda: slots))
        monkeypatch.setattr(_ray, "cluster", lambda *given: manager)
        return found

    install()
    return install


def chosen(hp, name):
    return hp.Choice(name, {"a": [0, 1, 2], "b": [0, 1]}[name], default=1)


def score(tuner, trial):
    """A matter of the values, of which the search may not have known the second."""
    a, b = (chosen(trial.hyperparameters, name) for name in "ab")
    return {"val_accuracy": a + b / 10, "other": 1}


def tuner_of(kind, folder, trials=6, known="ab", run=score, **options):
    """A tuner whose trials write their names to `ran` and do what `run` does."""
    kind = getattr(keras_tuner, kind)

    class Noted(kind):
        def run_trial(self, trial, verbose=0, **given):
            with Path(self.directory, "ran").open("a") as file:
                file.write(f"{trial.trial_id} ")
            return run(self, trial, **given)

    space = keras_tuner.HyperParameters()
    for name in known:
        chosen(space, name)
    length = {"max_trials": trials}
    if kind is keras_tuner.Hyperband:
        length = {"max_epochs": 4, "factor": 2}
    if kind is keras_tuner.BayesianOptimization:
        length["num_initial_points"] = 2
    named = {"objective": "val_accuracy", "seed": 1, "directory": folder, **length}
    return Noted(**named, **options, project_name="p", hyperparameters=space)


def ran(folder):
    """The trials that were begun, once for each time."""
    return (folder / "ran").read_text().split()


def found_by(tuner):
    trials = tuner.oracle.trials.items()
    return {n: (t.hyperparameters.values, t.score, t.status) for n, t in trials}


def assert_whole(tuner):
    """Each trial has ended once, with one value of each metric; no two are the same."""
    oracle = tuner.oracle
    assert sorted(oracle.end_order) == sorted(oracle.trials)
    assert not oracle.ongoing_trials
    for trial in oracle.trials.values():
        assert trial.status == "COMPLETED"
        assert len(trial.metrics.get_history("val_accuracy")) == 1
        hp = trial.hyperparameters.values
        assert trial.score == hp["a"] + hp["b"] / 10
    points = {str(sorted(values.items())) for values, *_ in found_by(tuner).values()}
    if not isinstance(oracle, keras_tuner.oracles.BayesianOptimizationOracle):
        assert len(points) == len(oracle.trials)


@pytest.mark.parametrize(
    "kind", ["RandomSearch", "BayesianOptimization", "GridSearch", "Hyperband"]
)
def test_same_trials_as_in_one_process_whatever_dies_and_is_reloaded(
    kind, processes, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)  # other processes are in other folders
    found = processes(slots=2 if kind == "RandomSearch" else 1, deaths=3)
    one, other = (tuner_of(kind, name) for name in "ab")
    one.search(verbose=0)
    search_on_ray(other, max_retries=3)
    assert found_by(one) == found_by(other)
    assert_whole(other)
    (sent,) = found.sent  # once for all trials, and without the oracle
    assert cloudpickle.loads(sent)[0].oracle is None
    assert "a signal\n" in (out := capsys.readouterr().out)
    counts = "0 running, 0 failed, 3 processes died, best val_accuracy 2.1"
    of = "" if kind == "Hyperband" else " of 6"
    assert f"Trials: {len(other.oracle.trials)}{of} ended, {counts}" in out
    assert len(other.oracle.trials) >= 6
    again, before = tuner_of(kind, "b"), ran(Path("b"))
    search_on_ray(again)
    assert found_by(again) == found_by(other)
    assert ran(Path("b")) == before


def test_a_trial_that_is_run_again_draws_the_same_numbers(processes, tmp_path):
    def run(tuner, trial):
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
        lock = Path(tuner.project_dir, f"trial_{trial.trial_id}", "partial.lock")
        assert lock.exists()  # no process that has outlived its driver trains here too
        return np.random.random()

    def scores(name, **options):
        processes(**options)
        keras.config.set_dtype_policy("mixed_bfloat16")
        tuner = tuner_of("RandomSearch", tmp_path / name, run=run)
        search_on_ray(tuner)
        return {name: trial.score for name, trial in tuner.oracle.trials.items()}

    expected = scores("whole")
    assert len(set(expected.values())) == 6
    assert scores("deaths", deaths=3) == expected


@pytest.mark.parametrize(("executions", "scores"), [(1, [1, 0]), (2, [0, 0])])
def test_a_trial_whose_process_died_goes_on_from_its_checkpoint(
    executions, scores, processes, tmp_path
):
    """Unless it is several trainings, which would find the checkpoint of the first."""

    def run(tuner, trial, out=None):
        resumes = out is not None and out.exists()
        if out is not None:
            out.mkdir(exist_ok=True)
        return float(resumes)

    processes(slots=1, deaths=1, share=1)
    tuner = tuner_of("RandomSearch", tmp_path, trials=2, run=run)
    tuner.hypermodel = types.SimpleNamespace(fit=lambda out: None)
    tuner.executions_per_trial = executions
    search_on_ray(tuner)
    assert [trial.score for trial in tuner.oracle.trials.values()] == scores


def test_a_trial_whose_processes_always_die_has_failed(processes, tmp_path):
    processes(slots=1, deaths=99, share=1)
    tuner = tuner_of("RandomSearch", tmp_path)
    with pytest.raises(RuntimeError, match=r"consecutive fail.*3.\nIts process has"):
        search_on_ray(tuner, max_retries=2)
    assert ran(tmp_path) == [*"000111222"]
    message = "Its process has died too often: a signal"
    assert tuner.oracle.trials["0"].message == message


def test_trials_that_fail_do_so_alone_and_what_others_report_is_kept(tmp_path, capsys):
    """One has no number, one always raises an error, one does so the first time."""

    def run(tuner, trial):
        def report(value, step):
            tuner.oracle.update_trial(trial.trial_id, {"val_accuracy": value}, step)

        if trial.trial_id == "1":
            return float("nan")
        is_first = ran(tmp_path).count(trial.trial_id) == 1
        if trial.trial_id == "2" or (trial.trial_id == "3" and is_first):
            report(9, step=7)
            raise ValueError("bad luck")
        for step, value in enumerate((0, 5, 3)):
            report(value, step)

    tuner = tuner_of("RandomSearch", tmp_path, run=run, max_retries_per_trial=1)
    search_on_ray(tuner)
    trials = tuner.oracle.trials
    assert {n for n in trials if trials[n].status == "FAILED"} == {"1", "2"}
    assert sorted(ran(tmp_path)) == [*"011223345"]
    assert "Trial 2 failed: ValueError: bad luck" in capsys.readouterr().out
    for name in "0345":
        history = trials[name].metrics.get_history("val_accuracy")
        assert {at.step: at.mean() for at in history} == {0: 0, 1: 5, 2: 3}
        assert trials[name].best_step == 1


def test_an_error_of_all_trials_ends_the_search(processes, tmp_path):
    def run(tuner, trial):
        raise keras_tuner.errors.FatalValueError("no such data")

    found, tuner = processes(), tuner_of("RandomSearch", tmp_path, run=run)
    tuner.oracle.verbose = 1
    with pytest.raises(ValueError, match="no such data"):
        search_on_ray(tuner)
    found.cancel.assert_called_once_with(mock.ANY, force=True)  # the other one
    assert tuner.oracle.verbose == 1


def test_an_oracle_that_wants_to_wait(tmp_path, monkeypatch):
    tuner = tuner_of("RandomSearch", tmp_path)
    answers = itertools.chain([{"status": "IDLE"}] * 3, itertools.repeat(mock.DEFAULT))
    populate = mock.Mock(wraps=tuner.oracle.populate_space, side_effect=answers)
    monkeypatch.setattr(tuner.oracle, "populate_space", populate)
    search_on_ray(tuner)
    assert_whole(tuner)
    assert populate.call_count == 3 + 6


def test_a_folder_that_is_not_shared_ends_the_search_at_once(processes, tmp_path):
    """The other machine has a folder of the same name that is another one."""

    def get(result):
        for file in tmp_path.glob("p/trial_*/trial.json"):
            file.unlink()
        return result()

    processes().get = get
    with pytest.raises(RuntimeError, match=r"all machines see; \S+ does not see it"):
        search_on_ray(tuner_of("RandomSearch", tmp_path))
    assert not (tmp_path / "ran").exists()


# Also a grid whose points come out of order: it learns of some when trials end.
@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("RandomSearch", "ab"),
        ("GridSearch", "ab"),
        ("GridSearch", "a"),
        ("Hyperband", "ab"),
    ],
)
@pytest.mark.parametrize(
    ("of", "name", "step"),
    [(os, "replace", 3), (Processes, "wait", 1)],  # a trial writes four files
    ids=["killed before a file is written", "interrupted while trials run"],
)
def test_a_search_that_is_stopped_goes_on(of, name, step, kind, known, tmp_path):
    """In another process or, after Ctrl-C in a notebook, with the same tuner.

    No trial that has ended is run again, and none is lost.
    """
    function = getattr(of, name)
    for number in itertools.count(step, step):
        folder = tmp_path / str(number)
        tuner = tuner_of(kind, folder, 4, known)
        # Whatever cleans up is stopped too.
        then = itertools.chain([mock.DEFAULT] * number, itertools.repeat(Killed))
        stopping = mock.Mock(wraps=function, side_effect=then)
        with mock.patch.object(of, name, stopping), contextlib.suppress(Killed):
            search_on_ray(tuner)
            break
        files = folder.glob("p/trial_*/trial.json")
        states = [json.loads(file.read_text()) for file in files]
        ended = {s["trial_id"] for s in states if s["status"] == "COMPLETED"}
        (folder / "ran").write_text("")
        if of is os:
            tuner = tuner_of(kind, folder, 4, known)
        search_on_ray(tuner)
        assert_whole(tuner)
        assert not ended & set(ran(folder))
        assert kind == "Hyperband" or len(tuner.oracle.trials) == 4
    assert number >= 4 * step


def test_progress_on_a_terminal_is_one_line(processes, tmp_path, monkeypatch, capsys):
    processes(slots=1, deaths=1, share=1)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    search_on_ray(tuner_of("RandomSearch", tmp_path, trials=1))
    _, begun, died, again, ended = capsys.readouterr().out.split("\r\033[K")
    assert begun == "Trials: 0 of 1 ended, 1 running, 0 failed, 0 processes died"
    assert died == "Trial 0: its process died. a signal\n"
    assert again == begun.replace("0 processes", "1 processes")
    assert ended.endswith("(trial 0)\n") and ended.count("\n") == 1


@pytest.mark.parametrize(
    ("asked", "is_ours", "expected"),
    [  # of 8 cores and 2 GPUs: those of a trial, and how many trials
        ((None, None, None, None), True, (1, 1, 2)),
        ((None, 3, None, None), True, (2, 1, 3)),
        ((None, 16, None, 0), True, (1, 0, 16)),
        ((None, 3, None, None), False, (1, 1, 3)),
        (("auto", 3, None, None), True, (1, 1, 3)),
        ((None, None, 2.5, 0.25), True, (2.5, 0.25, 3)),
        ((None, None, 0, 0), False, (0, 0, 1)),
    ],
)
def test_resources_of_a_trial(asked, is_ours, expected, monkeypatch):
    there, ray = {"CPU": 8.0, "GPU": 2.0}, mock.Mock()
    ray.cluster_resources.return_value = there
    ray.nodes.return_value = [{"Resources": {}}, {"Resources": there}]
    started = mock.Mock(return_value=(ray, is_ours))
    monkeypatch.setattr(_ray_tasks, "_started", started)
    address, parallel, cpus, _ = asked
    with _ray_tasks.cluster(*asked) as (_, _, slots):
        task = ray.remote.call_args.kwargs
        assert (task["num_cpus"], task["num_gpus"], slots()) == expected
        assert (task["max_calls"], task["max_retries"]) == (1, 0)  # a fresh process
        assert not ray.shutdown.called
    assert ray.shutdown.called == is_ours
    cores = math.ceil((parallel or 1) * (cpus or 1))
    started.assert_called_once_with(address, cores)
    variables = task["runtime_env"]["env_vars"]
    assert variables["PJRT_NPROC"] == str(max(1, math.ceil(expected[0])))
    shared = "true" if expected[1] == 0.25 else None
    assert variables.get("TF_FORCE_GPU_ALLOW_GROWTH") == shared


@pytest.mark.parametrize(("name", "value"), [("max_retries", -1), ("parallel", 0)])
def test_numbers_that_do_not_fit(name, value, tmp_path):
    with pytest.raises(ValueError, match=rf"`{name}` .*={value}"):
        search_on_ray(tuner_of("RandomSearch", tmp_path), **{name: value})
