"""What the driver does: trials that die, a driver that dies, oracles of every kind.

Ray is replaced by calls in this process; tests/tuning/test_ray.py has it.
"""

import collections
import contextlib
import json
import os
import random
import types
from pathlib import Path

import keras
import keras_tuner
import numpy as np
import pytest

from keras_gdrn.tuning import _ray, search_on_ray
from keras_gdrn.tuning._ray_tasks import run_one_trial

cloudpickle = pytest.importorskip("ray.cloudpickle")
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
    ),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
KINDS = ["RandomSearch", "BayesianOptimization", "GridSearch", "Hyperband"]


class Died(Exception):
    """The process of a trial."""


class Failed(Died):
    """An error in the process of a trial."""

    def __init__(self, cause):
        super().__init__(cause)
        self.cause = cause


class Killed(BaseException):
    """The driver, by a signal that it cannot catch."""


class Processes:
    """Instead of Ray: what is sent is pickled, and processes die as often as told."""

    exceptions = types.SimpleNamespace(RayError=Died, RayTaskError=Failed)

    def __init__(self, deaths=0, share=0.5):
        self.deaths, self.share, self.random = deaths, share, random.Random(deaths)
        self.put, self.cancel = cloudpickle.dumps, lambda result, force: None

    def remote(self, given, state):
        def fresh():
            keras.config.set_dtype_policy("float32")
            with contextlib.chdir("/"):
                return run_one_trial(cloudpickle.loads(given), state)

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

    def wait(self, results, timeout):
        return results[:1], results[1:]


def tuner_of(kind, folder, trials=6, **options):
    kind = getattr(keras_tuner, kind)

    class Told(kind):
        """Trials whose score is a matter of their values; `fails` are their names."""

        def run_trial(self, trial, fails=(), **_):
            with Path(self.directory, "ran").open("a") as file:
                file.write(f"{trial.trial_id} ")
            if trial.trial_id in fails:
                raise ValueError("bad luck")
            hp = trial.hyperparameters.values
            return {"val_accuracy": hp["a"] + hp["b"] / 10, "other": 1}

    space = keras_tuner.HyperParameters()
    space.Choice("a", [0, 1, 2])
    space.Choice("b", [0, 1])
    length = {"max_trials": trials}
    if kind is keras_tuner.Hyperband:
        length = {"max_epochs": 4, "factor": 2}
    if kind is keras_tuner.BayesianOptimization:
        length["num_initial_points"] = 2
    named = {"objective": "val_accuracy", "seed": 1, "directory": folder, **length}
    return Told(**named, **options, project_name="p", hyperparameters=space)


@pytest.fixture
def tuner(tmp_path):
    return tuner_of("RandomSearch", tmp_path)


def ran(folder):
    """The trials that were begun, once for each time."""
    return (folder / "ran").read_text().split()


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


def assert_whole(tuner):
    """Each trial has ended once, with one value of each metric."""
    oracle = tuner.oracle
    assert collections.Counter(oracle.end_order) == dict.fromkeys(oracle.trials, 1)
    assert not oracle.ongoing_trials
    for trial in oracle.trials.values():
        assert trial.status == "COMPLETED"
        assert len(trial.metrics.get_history("val_accuracy")) == 1
        hp = trial.hyperparameters.values
        assert trial.score == hp["a"] + hp["b"] / 10


@pytest.mark.parametrize("kind", KINDS)
def test_every_tuner_searches_whatever_dies_and_is_reloaded(
    kind, processes, tmp_path, capsys
):
    processes(deaths=3)
    tuner = tuner_of(kind, tmp_path)
    search_on_ray(tuner, max_retries=3)
    assert_whole(tuner)
    assert "3 processes died, best val_accuracy 2.1" in capsys.readouterr().out
    assert len(tuner.oracle.trials) >= 6
    again, before = tuner_of(kind, tmp_path), ran(tmp_path)
    assert again.get_best_hyperparameters()[0].values["a"] == 2
    search_on_ray(again)
    assert ran(tmp_path) == before


def test_same_trials_as_in_one_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # other processes are in other folders
    tuners = [tuner_of("RandomSearch", name) for name in "ab"]
    tuners[0].search(verbose=0)
    search_on_ray(tuners[1])
    one, other = (
        {n: (t.hyperparameters.values, t.score) for n, t in tuner.oracle.trials.items()}
        for tuner in tuners
    )
    assert one == other


def test_a_trial_that_is_run_again_draws_the_same_numbers(processes, tmp_path):
    def run_trial(self, trial):
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
        return np.random.random()

    def scores(name, **options):
        processes(**options)
        tuner = tuner_of("RandomSearch", tmp_path / name)
        type(tuner).run_trial = run_trial
        keras.config.set_dtype_policy("mixed_bfloat16")
        search_on_ray(tuner)
        return {name: trial.score for name, trial in tuner.oracle.trials.items()}

    expected = scores("whole")
    assert len(set(expected.values())) == 6
    assert scores("deaths", deaths=3) == expected


class Resuming(keras_tuner.HyperModel):
    """Its score is whether there is a checkpoint of the same trial."""

    def build(self, hp):
        hp.Choice("a", [0, 1])
        return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])

    def fit(self, hp, model, out, **_):
        checkpoint = Path(out, "checkpoint")
        resumes = checkpoint.exists()
        checkpoint.parent.mkdir(exist_ok=True)
        checkpoint.touch()
        return {"val_accuracy": float(resumes)}


def test_a_trial_whose_process_died_goes_on_from_its_checkpoint(processes, tmp_path):
    processes(slots=1, deaths=1, share=1)
    named = {"objective": "val_accuracy", "directory": tmp_path, "max_trials": 2}
    tuner = keras_tuner.RandomSearch(Resuming(), **named)
    search_on_ray(tuner)
    assert [trial.score for trial in tuner.oracle.trials.values()] == [1.0, 0.0]


def test_a_trial_whose_processes_always_die_has_failed(processes, tuner, tmp_path):
    processes(slots=1, deaths=99, share=1)
    with pytest.raises(RuntimeError, match=r"consecutive fail.*3.\nIts process has"):
        search_on_ray(tuner, max_retries=2)
    assert collections.Counter(ran(tmp_path)) == {"0": 3, "1": 3, "2": 3}
    assert (
        tuner.oracle.trials["0"].message == "Its process has died too often: a signal"
    )


def test_a_trial_that_raises_an_error_fails_alone(tmp_path, capsys):
    tuner = tuner_of("RandomSearch", tmp_path, max_retries_per_trial=1)
    search_on_ray(tuner, fails=("2",))
    statuses = [tuner.oracle.trials[name].status for name in "012345"]
    assert statuses == ["COMPLETED"] * 2 + ["FAILED"] + ["COMPLETED"] * 3
    assert ran(tmp_path).count("2") == 2  # Keras Tuner's own retries
    assert "Trial 2 failed: ValueError: bad luck" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:The use case of calling:DeprecationWarning")
def test_what_a_failed_attempt_has_reported_is_left_out(tmp_path):
    def run_trial(self, trial):
        attempts = Path(self.directory, f"attempts_{trial.trial_id}")
        attempts.mkdir(exist_ok=True)
        step = 5 - len(list(attempts.iterdir()))
        Path(attempts, str(step)).touch()
        self.oracle.update_trial(trial.trial_id, {"val_accuracy": step}, step=step)
        if step == 5:
            raise ValueError("bad luck")

    tuner = tuner_of("RandomSearch", tmp_path, max_retries_per_trial=1)
    type(tuner).run_trial = run_trial
    search_on_ray(tuner)
    for trial in tuner.oracle.trials.values():
        history = trial.metrics.get_history("val_accuracy")
        assert [found.step for found in history] == [4]


def test_an_error_of_all_trials_ends_the_search(tuner):
    error = keras_tuner.errors.FatalValueError("no such data")
    type(tuner).run_trial = lambda *_, **__: (_ for _ in ()).throw(error)
    with pytest.raises(ValueError, match="no such data"):
        search_on_ray(tuner)


def test_a_score_that_is_not_a_number_fails_alone(tuner):
    type(tuner).run_trial = lambda self, trial: (
        float("nan") if trial.trial_id == "1" else 0.5
    )
    search_on_ray(tuner)
    assert [t.trial_id for t in tuner.oracle.trials.values() if t.score != 0.5] == ["1"]
    assert tuner.oracle.trials["1"].status == "FAILED"


@pytest.mark.filterwarnings("ignore:The use case of calling:DeprecationWarning")
def test_all_that_a_trial_reports_reaches_the_oracle(tuner):
    def run_trial(self, trial):
        for step, score in enumerate((0, 5, 3)):
            self.oracle.update_trial(trial.trial_id, {"val_accuracy": score}, step=step)

    type(tuner).run_trial = run_trial
    search_on_ray(tuner)
    for trial in tuner.oracle.trials.values():
        history = trial.metrics.get_history("val_accuracy")
        steps = [(found.step, *found.value) for found in history]
        assert steps == [(0, 0), (1, 5), (2, 3)]
        assert trial.best_step == 1


def test_an_oracle_that_wants_to_wait(tuner):
    populate, asked = tuner.oracle.populate_space, []

    def populate_space(trial_id):
        asked.append(trial_id)
        return {"status": "IDLE"} if len(asked) % 3 else populate(trial_id)

    tuner.oracle.populate_space = populate_space
    search_on_ray(tuner)
    assert_whole(tuner)
    assert len(asked) >= 18


def test_a_folder_that_is_not_shared_ends_the_search_at_once(
    processes, tuner, tmp_path
):
    """The other machine has a folder of the same name that is another one."""

    def get(result):
        for file in tmp_path.glob("p/trial_*/trial.json"):
            file.unlink()
        return result()

    processes().get = get
    with pytest.raises(RuntimeError, match=r"all machines see; \S+ does not see it"):
        search_on_ray(tuner)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", ["RandomSearch", "GridSearch"])
def test_an_interrupted_search_goes_on_with_the_same_tuner(kind, processes, tmp_path):
    """As in a notebook, after Ctrl-C."""
    found, tuner = processes(), tuner_of(kind, tmp_path)
    waits = iter([True] * 5 + [False])  # but for the last trial

    def wait(results, timeout):
        if next(waits):
            return Processes.wait(found, results, timeout)
        raise KeyboardInterrupt

    found.wait = wait
    with pytest.raises(KeyboardInterrupt):
        search_on_ray(tuner)
    assert tuner.oracle.ongoing_trials
    processes()
    search_on_ray(tuner)
    assert_whole(tuner)
    assert sorted(tuner.oracle.trials) == [*"012345"]


def ended(folder):
    files = folder.glob("p/trial_*/trial.json")
    states = [json.loads(file.read_text()) for file in files]
    return {s["trial_id"] for s in states if s["status"] == "COMPLETED"}


@pytest.mark.parametrize("kind", ["RandomSearch", "GridSearch", "Hyperband"])
def test_a_driver_that_is_killed_before_one_of_its_files(kind, tmp_path, monkeypatch):
    """No trial that has ended is run again, and none is lost."""
    replace, number, whole = os.replace, 1, False
    while not whole:
        number, written = number + 3, 0  # a trial writes four

        def write(*paths, last=number):
            nonlocal written
            written += 1
            if written >= last:
                raise Killed  # and whatever cleans up writes nothing either
            replace(*paths)

        folder = tmp_path / str(number)
        monkeypatch.setattr(os, "replace", write)
        try:
            search_on_ray(tuner_of(kind, folder, 4))
            whole = True
        except Killed:
            before = ended(folder)
            (folder / "ran").write_text("")
            monkeypatch.setattr(os, "replace", replace)
            tuner = tuner_of(kind, folder, 4)
            search_on_ray(tuner)
            assert_whole(tuner)
            assert not before & set(ran(folder))
            trials = tuner.oracle.trials.values()
            assert kind == "Hyperband" or len(trials) == 4
            points = {str(trial.hyperparameters.values) for trial in trials}
            assert len(points) == len(trials)
    assert number > 15


@pytest.mark.parametrize(("name", "value"), [("max_retries", -1), ("parallel", 0)])
def test_numbers_that_do_not_fit(name, value, tuner):
    with pytest.raises(ValueError, match=rf"`{name}` .*={value}"):
        search_on_ray(tuner, **{name: value})
