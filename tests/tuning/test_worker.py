"""How long a worker waits, for whom, and what it is told."""

import contextlib
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import grpc
import keras_tuner
import pytest
import search
from gdrn_search.callers import OnlyWithToken, make_token
from gdrn_search.chief import Chief
from gdrn_search.keras_tuner_internals import OracleServicer, calls, messages
from gdrn_search.worker import find_chief, follow

from keras_gdrn.training import TimeLimit, lock_folder

pytestmark = pytest.mark.filterwarnings(
    "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    """It is left as it was."""
    for name in ("ORACLE_IP", "ORACLE_PORT", "TUNER_ID"):
        monkeypatch.setenv(f"KERASTUNER_{name}", "")


@pytest.fixture
def nobody():
    """An address at which nothing answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{silent.getsockname()[1]}"


@contextlib.contextmanager
def serving(service):
    """The address at which a service answers calls with the token "this"."""
    server = grpc.server(
        ThreadPoolExecutor(max_workers=1), interceptors=[OnlyWithToken("this")]
    )
    calls.add_OracleServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(grace=None)


@pytest.fixture
def chief():
    """The address of a chief."""
    objective = keras_tuner.Objective("score", "max")
    oracle = keras_tuner.oracles.RandomSearchOracle(objective)
    with serving(Chief(oracle, 60, TimeLimit())) as address:
        yield address


def worker_of(channel, token, patience=60):
    """As much of a worker as calls the chief."""
    stub = calls.OracleStub(channel)
    tuner = SimpleNamespace(oracle=SimpleNamespace(stub=stub))
    follow(tuner, channel, token, patience)
    return tuner


def ask(tuner):
    request = messages.GetTrialRequest(trial_id="0")
    return tuner.oracle.stub.GetTrial(request, wait_for_ready=True, timeout=3600)


def test_no_chief(nobody):
    with pytest.raises(ConnectionError, match=f"there is no chief at {nobody}"):
        find_chief(nobody, patience=0.2)


def test_chief_that_has_gone(nobody):
    tuner = worker_of(grpc.insecure_channel(nobody), "this", patience=0.5)
    with pytest.raises(keras_tuner.errors.FatalError, match="has not answered for"):
        ask(tuner)


def test_chief_that_is_killed_at_a_call():
    class Killed(OracleServicer):
        calls = 0

        def GetTrial(self, request, context):
            self.calls += 1
            if self.calls < 3:
                context.abort(grpc.StatusCode.UNAVAILABLE, "as if it were killed")
            return messages.GetTrialResponse()

    service = Killed(None)
    with serving(service) as address:
        ask(worker_of(grpc.insecure_channel(address), "this"))
    assert service.calls == 3


def test_chief_of_another_search(chief):
    tuner = worker_of(find_chief(chief, patience=60), "that")
    with pytest.raises(keras_tuner.errors.FatalError, match="has another search"):
        ask(tuner)


def test_folder_that_is_not_the_chiefs(chief, tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match="must be a folder that all machines see"):
        run_worker(monkeypatch, chief, tmp_path / "mine")
    assert not list(tmp_path.iterdir())


def test_other_settings_than_the_chiefs(chief, tmp_path, monkeypatch):
    a_search_of_other_settings(tmp_path)
    with pytest.raises(SystemExit, match=r"(?s)a run with other settings.*seed: 5, no"):
        run_worker(monkeypatch, chief, tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["settings.json", "token"]


def test_workers_share_the_folder_that_the_chief_keeps(chief, tmp_path, monkeypatch):
    a_search_of_other_settings(tmp_path)
    with lock_folder(tmp_path), pytest.raises(SystemExit, match="with other settings"):
        run_worker(monkeypatch, chief, tmp_path)


def a_search_of_other_settings(folder):
    (folder / "settings.json").write_text('{"seed": 5}')
    make_token(folder)


def run_worker(monkeypatch, chief, out):
    given = ("--role", "worker", "--chief", chief, "--out", str(out))
    monkeypatch.setattr(sys, "argv", ["a script", *given])
    search.main()
