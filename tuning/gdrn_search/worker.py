"""The workers of a search on several machines: Keras Tuner's, which stay in touch."""

import contextlib
import os
import secrets
import socket
import threading
import time

import grpc
import keras_tuner

from .callers import TOKEN
from .chief import WORKER
from .keras_tuner_internals import call_through

BEAT = 2.0  # seconds between signs of life
_CHANNEL = (
    ("grpc.enable_http_proxy", 0),  # the machines are of one network
    ("grpc.max_reconnect_backoff_ms", 2000),  # a restarted chief is soon found
)


class Worker:
    """A tuner that runs the trials of a chief, and tells it that it is alive."""

    def pre_create_trial(self):
        super().pre_create_trial()
        time.sleep(0.5)  # the chief may have no trial yet, and is asked again at once

    def run_trial(self, trial, *args, **kwargs):
        ended = threading.Event()
        beat = threading.Thread(target=self._beat, args=(trial.trial_id, ended))
        beat.start()
        try:
            return super().run_trial(trial, *args, **kwargs)
        finally:
            ended.set()
            beat.join()

    def save(self):
        """Nothing: the chief keeps the state of the search."""

    def _beat(self, trial_id: str, ended: threading.Event) -> None:
        while not ended.wait(BEAT):
            # A chief that is away may come back before the trial ends and needs it.
            with contextlib.suppress(keras_tuner.errors.FatalError):
                self.oracle.get_trial(trial_id)


def find_chief(address: str, patience: float) -> grpc.Channel:
    """Waits for the chief; tuners are then made as workers of it, by Keras Tuner.

    Args:
        address: Address of the chief, `HOST:PORT`.
        patience: How long to wait, in seconds.

    Raises:
        ConnectionError: If there is none.
    """
    print(f"Waiting for the chief at {address}, for {patience / 60:g} minutes at most")
    channel = grpc.insecure_channel(address, options=_CHANNEL)
    try:
        grpc.channel_ready_future(channel).result(timeout=patience)
    except grpc.FutureTimeoutError:
        raise ConnectionError(
            f"there is no chief at {address}. Start it by the same command with "
            "--role chief"
        ) from None
    host, _, port = address.rpartition(":")
    os.environ["KERASTUNER_ORACLE_IP"] = host
    os.environ["KERASTUNER_ORACLE_PORT"] = port
    os.environ["KERASTUNER_TUNER_ID"] = "worker"  # any name but "chief"
    return channel


def follow(
    tuner: keras_tuner.Tuner, channel: grpc.Channel, token: str, patience: float
) -> None:
    """Makes a tuner call the chief through `channel`, as `Chief` wants to be called.

    Args:
        tuner: A `Worker`.
        channel: Channel from `find_chief`.
        token: Of the search, from `read_token`.
        patience: How long to wait for an answer, in seconds.
    """
    tuner.tuner_id = f"{socket.gethostname()}-{secrets.token_hex(2)}"
    told = ((WORKER, tuner.tuner_id), (TOKEN, token))
    call_through(tuner, grpc.intercept_channel(channel, _Patient(told, patience)))


class _Patient(grpc.UnaryUnaryClientInterceptor):
    """Calls again, for some time, if the chief goes away: it may be restarted.

    An error, which is then none of the trial's, ends the search of this worker.
    """

    def __init__(self, told: tuple[tuple[str, str], ...], patience: float):
        self.told = told
        self.patience = patience

    def intercept_unary_unary(self, continuation, client_call_details, request):
        end = time.monotonic() + self.patience
        while (left := end - time.monotonic()) > 0:
            call = continuation(
                client_call_details._replace(timeout=left, metadata=self.told), request
            )
            error = call.exception()
            if error is None:
                return call
            if error.code() not in (
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
            ):
                raise keras_tuner.errors.FatalRuntimeError(error.details())
        raise keras_tuner.errors.FatalRuntimeError(
            f"the chief has not answered for {self.patience / 60:g} minutes"
        )
