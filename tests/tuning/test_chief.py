"""The chief's answers, its patience, and what it finds after a restart."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import grpc
import keras_tuner
import pytest
from gdrn_search import keras_tuner_internals as internals
from gdrn_search.chief import Chief, NoWorkers, serve
from gdrn_search.state import check_state

from keras_gdrn.training import OutOfTime, TimeLimit

pytestmark = pytest.mark.filterwarnings(
    "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
)

service = internals.messages
PATIENCE = 3


class Space(keras_tuner.HyperModel):
    def build(self, hp):
        hp.Int("x", 0, 1000)


def make_tuner(folder, trials=3):
    """A tuner with Keras Tuner's random search."""
    oracle = keras_tuner.oracles.RandomSearchOracle(
        keras_tuner.Objective("score", "max"), max_trials=trials, seed=1
    )
    return keras_tuner.engine.base_tuner.BaseTuner(
        oracle, Space(), directory=folder, project_name="trials"
    )


def make_chief(oracle, minutes=None):
    return Chief(oracle, PATIENCE, TimeLimit(minutes))


@pytest.fixture
def chief(tmp_path):
    return make_chief(make_tuner(tmp_path).oracle)


class SentAway(Exception):
    """In the place of the error that a worker's call of the chief ends with."""


class Caller:
    """A worker, and the context of its calls."""

    def __init__(self, name):
        self.name = name

    def invocation_metadata(self):
        return (("worker", self.name),)

    def abort(self, code, text):
        raise SentAway(text)

    def asks(self, chief):
        request = service.CreateTrialRequest(tuner_id=self.name)
        proto = chief.CreateTrial(request, self).trial
        return keras_tuner.engine.trial.Trial.from_proto(proto)

    def lives(self, chief, trial):
        chief.GetTrial(service.GetTrialRequest(trial_id=trial.trial_id), self)

    def reports(self, chief, trial, score):
        metrics = {"score": score}
        request = service.UpdateTrialRequest(trial_id=trial.trial_id, metrics=metrics)
        chief.UpdateTrial(request, self)

    def ends(self, chief, trial, score=1.0):
        trial.status = "INVALID" if score is None else "COMPLETED"
        if score is not None:
            self.reports(chief, trial, score)
        chief.EndTrial(service.EndTrialRequest(trial=trial.to_proto()), self)


ANNE, BOB, CAROL = Caller("anne"), Caller("bob"), Caller("carol")


def test_silent_worker_is_given_up_and_its_trial_given_out_once_more(chief):
    first, second = ANNE.asks(chief), BOB.asks(chief)
    ANNE.reports(chief, first, 0.25)
    for _ in range(PATIENCE + 1):
        BOB.lives(chief, second)
        assert not chief.watch()
    assert list(chief.silent) == ["bob"]
    BOB.ends(chief, second)
    again = BOB.asks(chief)
    assert again.trial_id == first.trial_id
    assert again.hyperparameters.values == first.hyperparameters.values
    ANNE.ends(chief, first, 0.25)  # it was not dead after all
    assert chief.oracle.end_order == ["1"]
    BOB.ends(chief, again, 0.5)
    assert chief.oracle.end_order == ["1", "0"]
    assert chief.oracle.get_trial("0").score == 0.5


def test_trial_that_is_lost_twice_has_failed(chief):
    for caller in (ANNE, BOB):
        assert caller.asks(chief).trial_id == "0"
        for _ in range(PATIENCE + 1):
            chief.watch()
    assert chief.oracle.end_order == ["0"]
    assert chief.oracle.get_trial("0").status == "FAILED"
    assert (
        chief.oracle.get_trial("0").message
        == "Worker bob has been silent for 0.05 minutes"
    )
    assert BOB.asks(chief).trial_id == "1"


def test_workers_stand_by_until_all_trials_have_ended(tmp_path):
    chief = make_chief(make_tuner(tmp_path, trials=1).oracle)
    trial = ANNE.asks(chief)
    assert BOB.asks(chief).status == "IDLE"
    ANNE.ends(chief, trial)
    assert ANNE.asks(chief).status == "STOPPED"
    assert not chief.watch()  # Bob is to be told
    assert BOB.asks(chief).status == "STOPPED"
    assert chief.watch()


def test_failed_trial_is_given_out_once_more(chief):
    trial = ANNE.asks(chief)
    ANNE.ends(chief, trial, None)
    again = BOB.asks(chief)
    assert again.trial_id == trial.trial_id
    BOB.ends(chief, again, 1.0)
    assert chief.oracle.get_trial("0").status == "COMPLETED"


def test_three_failures_in_a_row_end_the_search(chief):
    for _ in range(5):
        ANNE.ends(chief, ANNE.asks(chief), None)
    trial = ANNE.asks(chief)
    with pytest.raises(SentAway, match="consecutive failures exceeded the limit of 3"):
        ANNE.ends(chief, trial, None)
    with pytest.raises(RuntimeError, match="It failed at anne, whose output tells why"):
        chief.watch()


def test_full_disk_ends_the_search_when_the_others_have_been_told(chief, monkeypatch):
    def failing():
        raise OSError("No space left on device")

    trial = ANNE.asks(chief)
    monkeypatch.setattr(chief.oracle, "save", failing)
    with pytest.raises(SentAway, match="the chief ends: No space left"):
        BOB.asks(chief)
    assert not chief.watch()
    with pytest.raises(SentAway):
        ANNE.ends(chief, trial)
    with pytest.raises(OSError, match="No space left"):
        chief.watch()


def test_too_many_losses_end_the_search_when_the_others_have_been_told(chief):
    chief.oracle.max_consecutive_failed_trials = 1
    for caller in (ANNE, BOB):
        assert caller.asks(chief).trial_id == "0"
        trial = CAROL.asks(chief)
        for _ in range(PATIENCE + 1):
            CAROL.lives(chief, trial)
            assert not chief.watch()
    with pytest.raises(SentAway, match="consecutive failures exceeded the limit of 1"):
        CAROL.ends(chief, trial)
    with pytest.raises(RuntimeError, match="Worker bob has been silent"):
        chief.watch()


def test_no_workers(chief):
    for _ in range(PATIENCE):
        assert not chief.watch()
    with pytest.raises(NoWorkers, match=r"heard from for 0\.05 minutes"):
        chief.watch()


def test_time_is_up_for_all_workers(tmp_path):
    chief = make_chief(make_tuner(tmp_path).oracle, minutes=0)
    first, second = ANNE.asks(chief), BOB.asks(chief)
    ANNE.ends(chief, first)
    assert ANNE.asks(chief).status == "STOPPED"
    assert not chief.watch()
    BOB.ends(chief, second)
    assert BOB.asks(chief).status == "STOPPED"
    with pytest.raises(OutOfTime):
        chief.watch()
    assert chief.oracle.end_order == ["0", "1"]


def test_worker_at_a_trial_of_another_search_is_sent_away(chief, tmp_path):
    elsewhere = make_chief(make_tuner(tmp_path / "elsewhere").oracle)
    trial = ANNE.asks(elsewhere)
    with pytest.raises(SentAway, match="no trial 0: it is of another search"):
        ANNE.lives(chief, trial)
    assert not chief.silent
    assert not chief.over


def test_repeated_calls_count_once(chief):
    trial = ANNE.asks(chief)
    assert ANNE.asks(chief).trial_id == trial.trial_id
    ANNE.ends(chief, trial)
    ANNE.ends(chief, trial)
    assert chief.oracle.end_order == ["0"]


def test_finished_search_needs_no_worker(tmp_path):
    tuner = make_tuner(tmp_path, trials=1)
    chief = make_chief(tuner.oracle)
    ANNE.ends(chief, ANNE.asks(chief))
    tuner.save()
    assert make_chief(make_tuner(tmp_path, trials=1).oracle).watch()
    assert not make_chief(make_tuner(tmp_path, trials=2).oracle).watch()


def test_killed_at_any_file_it_goes_on(tmp_path, monkeypatch):
    internals.mend_keras_tuner()
    tuner = make_tuner(tmp_path / "run", trials=4)
    tuner.save()
    snapshots = []
    replace = os.replace

    def watched(partial, path):
        replace(partial, path)
        snapshots.append(tmp_path / f"killed-{len(snapshots)}")
        shutil.copytree(tmp_path / "run", snapshots[-1])

    monkeypatch.setattr(os, "replace", watched)
    chief = make_chief(tuner.oracle)
    first, second = ANNE.asks(chief), BOB.asks(chief)
    BOB.ends(chief, second)
    second = BOB.asks(chief)
    BOB.ends(chief, second, None)
    BOB.ends(chief, BOB.asks(chief))
    ANNE.ends(chief, first)
    ANNE.ends(chief, ANNE.asks(chief))
    monkeypatch.setattr(os, "replace", replace)
    assert len(snapshots) > 10
    for folder in snapshots:
        check_state(folder / "trials")
        oracle = make_tuner(folder, trials=4).oracle
        internals.mend_reloaded(oracle)
        internals.leave_to_workers(oracle, folder / "trials")
        queue = oracle.get_state()["retry_queue"]
        ongoing = [trial.trial_id for trial in oracle.ongoing_trials.values()]
        places = [*oracle.end_order, *queue, *ongoing]
        assert sorted(places) == sorted(oracle.trials)
        saved = json.loads((folder / "trials" / "oracle.json").read_text())
        assert set(saved["retry_queue"]) <= set(queue)
        assert oracle.ongoing_trials.get("anne", first).trial_id in ("0", "3")
        finish(make_chief(oracle))
        assert sorted(oracle.end_order) == ["0", "1", "2", "3"]


def finish(chief):
    """A new worker, the only one who lives, does all that is left."""
    for _ in range(20):
        trial = CAROL.asks(chief)
        if trial.status == "STOPPED":
            return
        if trial.status == "RUNNING":
            CAROL.ends(chief, trial)
        chief.watch()
    raise AssertionError(chief.oracle.get_state())


def test_port_in_use(tmp_path):
    tuner = make_tuner(tmp_path)
    other = grpc.server(ThreadPoolExecutor(max_workers=1))
    address = f"127.0.0.1:{other.add_insecure_port('127.0.0.1:0')}"
    with pytest.raises(OSError, match=f"cannot listen at {address}: the port is"):
        serve(tuner, address, "a token", PATIENCE, TimeLimit())
    assert not list((tmp_path / "trials").iterdir())
    other.stop(grace=None)
