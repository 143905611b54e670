"""The chief of a search on several machines: Keras Tuner's, which knows who is alive.

Keras Tuner's own chief waits forever for a worker that is gone, and after a restart it
gives out trials that workers are still at.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus

from keras_gdrn.training import OutOfTime, TimeLimit

from .callers import OnlyWithToken, is_loopback
from .keras_tuner_internals import OracleServicer, calls, leave_to_workers, messages

WORKER = "worker"  # what a worker tells with each of its calls: its name
_WAITING = 16  # so many calls may wait, each for its message or for the chief
_EXPOSED = (
    "other machines can reach {}. Calls without the token of the search are refused, "
    "but nothing is encrypted, so that who can listen in knows the token: the network "
    "must be a private one"
)


class NoWorkers(RuntimeError):
    """All workers are gone."""


class Chief(OracleServicer):
    """Answers the workers of a search, and gives up those that have fallen silent.

    A trial belongs to the worker that has asked for it; what others report of it is
    ignored. A trial that fails, or whose worker is given up, is given out once more.
    Until all trials have ended, workers without one are told to ask again.

    Its methods are to be called in one thread: see `InOneThread`.

    Args:
        oracle: Of a Keras Tuner.
        patience: A worker is given up after so many seconds of silence, and the search
            after so many without workers. Only those count in which `watch` is called:
            not the time in which the chief itself was busy.
        limit: Of the time; then no more trials are given out.
    """

    def __init__(
        self,
        oracle: keras_tuner.Oracle,
        patience: float,
        limit: TimeLimit,
    ):
        super().__init__(oracle)
        oracle.max_retries_per_trial = 1
        oracle.verbose = 0  # what is printed here is of several trials at a time
        self.patience = patience
        self.limit = limit
        self.silent = dict.fromkeys(oracle.ongoing_trials, 0)  # seconds, of each worker
        self.alone = 0  # seconds
        self.begun: dict[str, float] = {}
        self.over = len(oracle.end_order) >= oracle.max_trials
        self.reason: Exception | None = None  # why it is over too early

    def watch(self) -> bool:
        """Whether all is done, workers have left included. To be called each second.

        Raises:
            NoWorkers: If there have been none for too long.
            Exception: Which has ended the search, such as `OutOfTime`.
        """
        for worker in list(self.silent):
            self.silent[worker] += 1
            if self.silent[worker] > self.patience:
                try:
                    self._give_up(worker)
                except Exception as error:  # of which the others are to be told
                    self.over, self.reason = True, error
        if self.over and not self.silent:
            if self.reason:
                raise self.reason
            return True
        self.alone = 0 if self.silent else self.alone + 1
        if self.alone > self.patience:
            raise NoWorkers(
                f"no worker has been heard from for {self.patience / 60:g} minutes. "
                "The same commands go on"
            )
        return False

    def CreateTrial(self, request, context):
        with self._caller(context) as worker:
            trial = self._next_trial(worker)
            if trial.status == TrialStatus.STOPPED:
                del self.silent[worker]
        return messages.CreateTrialResponse(trial=trial.to_proto())

    def GetTrial(self, request, context):
        """Workers call it while they are at a trial, to tell that they are alive."""
        with self._caller(context, request.trial_id):
            return super().GetTrial(request, context)

    def UpdateTrial(self, request, context):
        with self._caller(context, request.trial_id) as worker:
            if self._is_at(worker, request.trial_id):
                return super().UpdateTrial(request, context)
            trial = self.oracle.get_trial(request.trial_id)
        return messages.UpdateTrialResponse(trial=trial.to_proto())

    def EndTrial(self, request, context):
        with self._caller(context, request.trial.trial_id) as worker:
            trial = Trial.from_proto(request.trial)
            if self._is_at(worker, trial.trial_id):
                if trial.status != TrialStatus.COMPLETED:
                    trial.message = f"It failed at {worker}, whose output tells why"
                self._end(trial)
                now = time.perf_counter()
                self.limit.took(now - self.begun.get(trial.trial_id, now))
        return messages.EndTrialResponse()

    @contextlib.contextmanager
    def _caller(self, context, trial_id: str | None = None) -> Iterator[str]:
        """The name of the worker that calls, which is alive. An error is the end."""
        if trial_id is not None and trial_id not in self.oracle.trials:
            context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"the chief has no trial {trial_id}: it is of another search",
            )
        worker = dict(context.invocation_metadata())[WORKER]
        if worker not in self.silent:
            print(f"Worker {worker} is here")
        self.silent[worker] = 0
        try:
            yield worker
        except Exception as error:
            self.over, self.reason = True, error
            del self.silent[worker]
            context.abort(grpc.StatusCode.INTERNAL, f"the chief ends: {error}")

    def _next_trial(self, worker: str) -> Trial:
        if not self.over and self.limit.is_reached():
            self.over, self.reason = True, OutOfTime("Out of time")
        if self.over:
            return Trial(self.oracle.get_space(), status=TrialStatus.STOPPED)
        trial = self.oracle.create_trial(worker)
        if trial.status == TrialStatus.RUNNING:
            trial.metrics = Trial(trial.hyperparameters).metrics  # of no earlier run
            self.begun[trial.trial_id] = time.perf_counter()
            print(f"Trial {trial.trial_id} begins at {worker}")
        elif trial.status == TrialStatus.STOPPED:
            if self.oracle.ongoing_trials:  # one of them may be given out once more
                trial.status = TrialStatus.IDLE
            else:
                self.over = True
        return trial

    def _is_at(self, worker: str, trial_id: str) -> bool:
        trial = self.oracle.ongoing_trials.get(worker)
        return trial is not None and trial.trial_id == trial_id

    def _give_up(self, worker: str) -> None:
        del self.silent[worker]
        silence = f"Worker {worker} has been silent for {self.patience / 60:g} minutes"
        print(silence)
        if worker in self.oracle.ongoing_trials:
            trial = self.oracle.ongoing_trials[worker]
            trial.status, trial.message = TrialStatus.INVALID, silence
            self._end(trial)

    def _end(self, trial: Trial) -> None:
        self.oracle.end_trial(trial)
        ended = self.oracle.get_trial(trial.trial_id)
        if ended.status == TrialStatus.COMPLETED:
            print(f"Trial {ended.trial_id} ends: {ended.score:.4f}")
        else:
            print(f"Trial {ended.trial_id} is {ended.status.lower()}: {ended.message}")


class InOneThread:
    """An object whose methods run one at a time, whoever calls them, in one thread.

    A lock would not do: Keras Tuner has its own, and keeps it after an error for the
    thread that had it.
    """

    def __init__(self, owner: Any):
        self.owner = owner
        self.thread = ThreadPoolExecutor(max_workers=1)

    def __getattr__(self, name: str) -> Callable:
        method = getattr(self.owner, name)
        return lambda *given: self.thread.submit(method, *given).result()


def serve(
    tuner: keras_tuner.Tuner,
    address: str,
    token: str,
    patience: float,
    limit: TimeLimit,
) -> None:
    """Leads a search until it ends: see `Chief`.

    Args:
        tuner: Made as for a search on one machine, after `mend_reloaded`.
        address: Where to listen, `HOST:PORT`.
        token: Of the search, from `make_token`. Calls without it are refused.
        patience, limit: As `Chief`.

    Raises:
        OSError: If it cannot listen there.
        OutOfTime, NoWorkers: If trials are left to be run.
    """
    server = _server(address, token)
    leave_to_workers(tuner.oracle, Path(tuner.project_dir))
    tuner.save()
    chief = InOneThread(Chief(tuner.oracle, patience, limit))
    calls.add_OracleServicer_to_server(chief, server)
    server.start()
    print(f"Listening at {address} for workers")
    try:
        while not chief.watch():
            time.sleep(1)
    finally:
        server.stop(grace=5).wait()


def _server(address: str, token: str) -> grpc.Server:
    """A server, not started yet, that answers calls with the token alone."""
    server = grpc.server(
        ThreadPoolExecutor(max_workers=_WAITING),
        interceptors=[OnlyWithToken(token)],
        options=[("grpc.so_reuseport", 0)],
    )
    try:
        server.add_insecure_port(address)
    except RuntimeError:
        raise OSError(
            f"cannot listen at {address}: the port is in use, or the host is not this "
            "machine"
        ) from None
    if not is_loopback(address):
        print(f"warning: {_EXPOSED.format(address)}", file=sys.stderr)
    return server
