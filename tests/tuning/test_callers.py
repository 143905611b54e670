"""Who is answered by the chief: only callers that know the token of its search."""

import os
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import keras_tuner
import pytest
from gdrn_search.callers import is_loopback, make_token, read_token
from gdrn_search.chief import Chief, serve
from gdrn_search.keras_tuner_internals import messages

from keras_gdrn.training import TimeLimit

pytestmark = pytest.mark.filterwarnings(
    "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
)
SERVICE = messages.DESCRIPTOR.services_by_name["Oracle"]
METHODS = [method.name for method in SERVICE.methods]


class Space(keras_tuner.HyperModel):
    def build(self, hp):
        hp.Int("x", 0, 1000)


def make_tuner(folder):
    objective = keras_tuner.Objective("score", "max")
    return keras_tuner.engine.base_tuner.BaseTuner(
        keras_tuner.oracles.RandomSearchOracle(objective, max_trials=3, seed=1),
        Space(),
        directory=folder,
        project_name="trials",
    )


@pytest.fixture(scope="module")
def chief(tmp_path_factory):
    """A chief's tuner, a channel to where it listens, and the token of its search."""
    folder, over = tmp_path_factory.mktemp("search"), threading.Event()
    tuner, token = make_tuner(folder), make_token(folder)
    address = f"127.0.0.1:{free_port()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chief, "watch", lambda self: over.is_set())
        given = (tuner, address, token, 60, TimeLimit())
        thread = threading.Thread(target=serve, args=given)
        thread.start()
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=60)
            yield tuner, channel, token
        over.set()
        thread.join()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def call(channel, method, token, timeout=60):
    """Calls a method with an empty request; the status that it ends with."""
    metadata = [("worker", "eve"), *([("token", token)] if token is not None else [])]
    called = channel.unary_unary(f"/{SERVICE.full_name}/{method}")
    try:
        called(b"", metadata=metadata, timeout=timeout)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_there_are_methods():
    assert {"CreateTrial", "UpdateSpace", "GetSpace", "GetBestTrials"} <= set(METHODS)


@pytest.mark.parametrize("token", [None, "", "that", "t" * 32])
@pytest.mark.parametrize("method", [*METHODS, "NoSuchMethod"])
def test_no_method_is_for_strangers(chief, method, token):
    tuner, channel, _ = chief
    assert call(channel, method, token) == grpc.StatusCode.PERMISSION_DENIED
    assert not tuner.oracle.trials


@pytest.mark.parametrize("method", ["GetSpace", "UpdateSpace", "GetBestTrials"])
def test_workers_are_answered(chief, method):
    _, channel, token = chief
    assert call(channel, method, token) == grpc.StatusCode.OK


@pytest.fixture
def hanging(chief):
    """Makes a call whose message is never sent."""
    _, channel, _ = chief
    never = threading.Event()
    made = []

    def message():
        never.wait()
        yield b""

    def call(*metadata):
        method = channel.stream_unary(f"/{SERVICE.full_name}/GetSpace")
        made.append(method.future(message(), metadata=[("worker", "eve"), *metadata]))
        return made[-1]

    yield call
    for one in made:
        one.cancel()
    never.set()


def test_strangers_are_refused_before_they_send_a_message(chief, hanging):
    for one in [hanging() for _ in range(40)]:
        refusal = one.exception(timeout=5)
        assert refusal.code() == grpc.StatusCode.PERMISSION_DENIED


def test_workers_that_send_no_message_keep_no_other_waiting(chief, hanging):
    _, channel, token = chief
    for _ in range(4):
        hanging(("token", token))
    assert call(channel, "GetSpace", token, timeout=5) == grpc.StatusCode.OK


def test_calls_and_watch_run_in_one_thread(chief, monkeypatch):
    tuner, channel, token = chief
    ran_in, watched = [], threading.Event()
    space = tuner.oracle.get_space()

    def answer():
        ran_in.append(threading.current_thread())
        time.sleep(0.01)
        return space

    def watch(self):
        ran_in.append(threading.current_thread())
        watched.set()

    monkeypatch.setattr(tuner.oracle, "get_space", answer)
    monkeypatch.setattr(Chief, "watch", watch)
    with ThreadPoolExecutor() as callers:
        for _ in range(8):
            callers.submit(call, channel, "GetSpace", token)
    assert watched.wait(timeout=60)
    assert len(ran_in) > 8
    assert len(set(ran_in)) == 1


def test_token_is_the_folders_and_its_users_alone(tmp_path):
    (tmp_path / "partial-token").write_text("a chief that was killed")
    token = make_token(tmp_path)
    assert len(token) == 32 and make_token(tmp_path) == read_token(tmp_path) == token
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    (tmp_path / "other").mkdir()
    assert make_token(tmp_path / "other") != token


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"0123abcd", b"g" * 32, b"\xff" * 32, "à".encode() * 16]
)
def test_damaged_token_is_refused(tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    for get in (make_token, read_token):
        with pytest.raises(ValueError, match="token is damaged: it must have 32 hexa"):
            get(tmp_path)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:5000", True),
        ("127.8.0.1:5000", True),
        ("[::1]:5000", True),
        ("0.0.0.0:5000", False),
        ("[::]:5000", False),
        ("192.0.2.1:5000", False),
    ],
)
def test_who_can_call_at_an_address(address, expected):
    assert is_loopback(address) == expected


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_chief_warns_of_the_network(host, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Chief, "watch", lambda self: True)
    address = f"{host}:{free_port()}"
    serve(make_tuner(tmp_path), address, "a token", 60, TimeLimit())
    warned = capsys.readouterr().err
    assert (f"warning: other machines can reach {address}" in warned) == (
        host == "0.0.0.0"
    )
    assert ("must be a private one" in warned) == (host == "0.0.0.0")
