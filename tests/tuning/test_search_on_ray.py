"""What the driver does: trials that die, a driver that dies, oracles of every kind.

Ray is replaced by generators in this process; tests/tuning/test_ray.py has it.
"""

import collections
import contextlib
import json
import random
import re
import types
from pathlib import Path

import keras_tuner
import pytest

from keras_gdrn.training import OutOfTime
from keras_gdrn.tuning import _ray, _resumed, search_on_ray

cloudpickle = pytest.importorskip("ray.cloudpickle")
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
    ),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


class Died(Exception):
    """The process of a trial."""


class Killed(BaseException):
    """The driver, by a signal that it cannot catch."""


class Processes:
    """Instead of Ray: what is sent is pickled, and processes die as often as told."""

    died = Died

    def __init__(self, deaths=0, slots=2):
        self.deaths = deaths
        self.slots = lambda: slots
        self.random = random.Random(deaths)
        self.put = cloudpickle.dumps
        self.check_folder = self.cancel = lambda given: None
        self.get = lambda report: report

    def task(self, function):
        def remote(given, *arguments):
            return function(cloudpickle.loads(given), *arguments)

        return types.SimpleNamespace(remote=lambda *given: self.living(remote(*given)))

    def living(self, reports):
        for report in reports:
            self.die()
            yield report
        self.die()

    def die(self):
        if self.deaths and self.random.random() < 0.5:
            self.deaths -= 1
            raise Died("a signal\nand more")

    def wait(self, generators):
        return generators[:1]


def space():
    hp = keras_tuner.HyperParameters()
    hp.Choice("a", [0, 1, 2])
    hp.Choice("b", [0, 1])
    return hp


def tuner_of(kind, folder, **options):
    class Told(kind):
        """Trials whose score is a matter of their values; `fails` are their names."""

        def run_trial(self, trial, fails=(), **_):
            with Path(self.directory, "ran").open("a") as file:
                file.write(f"{trial.trial_id} ")
            if trial.trial_id in fails:
                raise ValueError("bad luck")
            hp = trial.hyperparameters.values
            return {"val_accuracy": hp["a"] + hp["b"] / 10, "other": 1}

    length = {"max_trials": 6}
    if kind is keras_tuner.Hyperband:
        length = {"max_epochs": 4, "factor": 2}
    if kind is keras_tuner.BayesianOptimization:
        length["num_initial_points"] = 2
    return Told(
        **{"objective": "val_accuracy", "seed": 1, "directory": folder, **length},
        **options,
        project_name="p",
        hyperparameters=space(),
    )


def ran(folder):
    """The trials that were begun, once for each time."""
    return (folder / "ran").read_text().split()


@pytest.fixture
def processes(monkeypatch):
    """Searches with these processes."""
    monkeypatch.setattr(_ray.time, "sleep", lambda seconds: None)

    def install(**options):
        found = Processes(**options)
        manager = contextlib.nullcontext(found)
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


KINDS = ["RandomSearch", "BayesianOptimization", "GridSearch", "Hyperband"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_tuner_searches_and_is_reloaded(kind, processes, tmp_path):
    kind = getattr(keras_tuner, kind)
    tuner = tuner_of(kind, tmp_path)
    search_on_ray(tuner)
    assert_whole(tuner)
    assert len(tuner.oracle.trials) >= 6
    again = tuner_of(kind, tmp_path)
    assert again.get_best_hyperparameters()[0].values["a"] == 2
    before = ran(tmp_path)
    search_on_ray(again)
    assert ran(tmp_path) == before


def test_same_trials_as_in_one_process(processes, tmp_path):
    tuners = [tuner_of(keras_tuner.RandomSearch, tmp_path / name) for name in "ab"]
    tuners[0].search(verbose=0)
    search_on_ray(tuners[1])
    values = [
        {name: t.hyperparameters.values for name, t in tuner.oracle.trials.items()}
        for tuner in tuners
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_die(kind, processes, tmp_path, capsys):
    found = processes(deaths=20)
    tuner = tuner_of(getattr(keras_tuner, kind), tmp_path)
    search_on_ray(tuner, max_retries=20)
    assert found.deaths == 0
    assert_whole(tuner)
    # Not counted: those that died when their trial had ended.
    assert re.search(
        r"1\d processes died, best val_acc\w+ 2\.1", capsys.readouterr().out
    )


def test_a_trial_whose_processes_always_die_has_failed(processes, tmp_path):
    found = processes(slots=1)
    found.die = lambda: (_ for _ in ()).throw(Died("a signal"))
    tuner = tuner_of(keras_tuner.RandomSearch, tmp_path)
    with pytest.raises(RuntimeError, match=r"consecutive fail.*3.\nIts process has"):
        search_on_ray(tuner, max_retries=2)
    assert collections.Counter(ran(tmp_path)) == {"0": 3, "1": 3, "2": 3}
    assert tuner.oracle.trials["0"].message.startswith("Its process has died 3 times: ")


def test_a_trial_that_raises_an_error_fails_alone(processes, tmp_path, capsys):
    tuner = tuner_of(keras_tuner.RandomSearch, tmp_path, max_retries_per_trial=1)
    search_on_ray(tuner, fails=("2",))
    statuses = [tuner.oracle.trials[name].status for name in "012345"]
    assert statuses == ["COMPLETED"] * 2 + ["FAILED"] + ["COMPLETED"] * 3
    assert ran(tmp_path).count("2") == 2  # Keras Tuner's own retries
    assert "Trial 2 failed: ValueError: bad luck" in capsys.readouterr().out


def test_an_error_of_all_trials_ends_the_search(processes, tmp_path):
    tuner = tuner_of(keras_tuner.RandomSearch, tmp_path)
    error = keras_tuner.errors.FatalValueError("no such data")
    type(tuner).run_trial = lambda *_, **__: (_ for _ in ()).throw(error)
    with pytest.raises(ValueError, match="no such data"):
        search_on_ray(tuner)


def test_a_score_that_is_not_a_number_fails_alone(processes, tmp_path):
    tuner = tuner_of(keras_tuner.RandomSearch, tmp_path)
    type(tuner).run_trial = lambda self, trial: (
        float("nan") if trial.trial_id == "1" else 0.5
    )
    tuner.oracle.objective.name = "score"
    search_on_ray(tuner)
    assert [t.trial_id for t in tuner.oracle.trials.values() if t.score != 0.5] == ["1"]
    assert tuner.oracle.trials["1"].status == "FAILED"


@pytest.mark.filterwarnings("ignore:The use case of calling:DeprecationWarning")
def test_intermediate_results_reach_the_oracle_while_the_trial_runs(
    processes, tmp_path
):
    tuner = tuner_of(keras_tuner.RandomSearch, tmp_path)
    known, update = [], tuner.oracle.update_trial

    def update_trial(trial_id, metrics, step=0):
        known.append((trial_id, metrics, step, tuner.oracle.trials[trial_id].status))
        return update(trial_id, metrics, step=step)

    def run_trial(self, trial):
        for step in range(3):
            self.oracle.update_trial(trial.trial_id, {"val_accuracy": step}, step=step)

    tuner.oracle.update_trial = update_trial
    type(tuner).run_trial = run_trial
    tuner.oracle.max_trials = 1
    search_on_ray(tuner)
    assert known == [("0", {"val_accuracy": s}, s, "RUNNING") for s in range(3)]
    assert tuner.oracle.trials["0"].best_step == 2


def test_an_oracle_that_wants_to_wait(processes, tmp_path):
    tuner = tuner_of(keras_tuner.RandomSearch, tmp_path)
    populate, asked = tuner.oracle.populate_space, []

    def populate_space(trial_id):
        asked.append(trial_id)
        return {"status": "IDLE"} if len(asked) % 3 else populate(trial_id)

    tuner.oracle.populate_space = populate_space
    search_on_ray(tuner)
    assert_whole(tuner)
    assert len(asked) >= 18


def test_no_trial_begins_that_would_not_end_in_time(processes, tmp_path):
    processes(slots=1)
    with pytest.raises(OutOfTime):
        search_on_ray(tuner_of(keras_tuner.RandomSearch, tmp_path), max_minutes=0)
    assert ran(tmp_path) == ["0"]
    search_on_ray(tuner_of(keras_tuner.RandomSearch, tmp_path))
    assert ran(tmp_path) == ["0", "1", "2", "3", "4", "5"]


def test_an_interrupted_search_goes_on_with_the_same_tuner(processes, tmp_path):
    """As in a notebook, after Ctrl-C."""
    found = processes()
    tuner = tuner_of(keras_tuner.RandomSearch, tmp_path)
    found.wait = lambda generators: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        search_on_ray(tuner)
    assert set(tuner.oracle.ongoing_trials) == {"0", "1"}
    processes()
    search_on_ray(tuner)
    assert_whole(tuner)


def ended(folder):
    states = (
        json.loads(file.read_text()) for file in folder.glob("p/trial_*/trial.json")
    )
    return {s["trial_id"] for s in states if s["status"] == "COMPLETED"}


@pytest.mark.parametrize("kind", ["RandomSearch", "GridSearch", "Hyperband"])
def test_a_driver_that_is_killed_before_any_of_its_files(
    kind, processes, tmp_path, monkeypatch
):
    """No trial that has ended is run again, and none is lost."""
    kind, replace = getattr(keras_tuner, kind), _resumed.os.replace
    number, whole = 0, False
    while not whole:
        number, written = number + 1, 0

        def write(*paths, last=number):
            nonlocal written
            written += 1
            if written >= last:
                raise Killed  # and whatever cleans up writes nothing either
            replace(*paths)

        folder = tmp_path / str(number)
        monkeypatch.setattr(_resumed.os, "replace", write)
        try:
            search_on_ray(tuner_of(kind, folder))
            whole = True
        except Killed:
            before = ended(folder)
            (folder / "ran").write_text("")
            monkeypatch.setattr(_resumed.os, "replace", replace)
            tuner = tuner_of(kind, folder)
            search_on_ray(tuner)
            assert_whole(tuner)
            assert not before & set(ran(folder))
            if kind is not keras_tuner.Hyperband:
                assert len(tuner.oracle.trials) == 6
            if kind is keras_tuner.GridSearch:
                points = {
                    str(t.hyperparameters.values) for t in tuner.oracle.trials.values()
                }
                assert len(points) == 6
    assert number > 30


def test_retries_below_zero(tmp_path):
    with pytest.raises(ValueError, match=r"`max_retries` .*=-1"):
        search_on_ray(tuner_of(keras_tuner.RandomSearch, tmp_path), max_retries=-1)
