"""Ray for a search, and its task: one trial in a separate process."""

import contextlib
import inspect
import logging
import math
import os
import socket
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import keras_tuner
import numpy as np
from keras_tuner.engine.trial import Trial

from keras_gdrn.training import lock_folder

# Seconds to wait for the trial's previous process, whose driver was killed.
_PATIENCE = 120.0


@contextlib.contextmanager
def cluster(
    address: str | None, parallel: int | None, cpus: float | None, gpus: float | None
) -> Iterator[tuple[Any, Any, Callable[[], int]]]:
    """Ray at an address, or on this machine until the context ends.

    If this process has already called `ray.init`, that one is used, and left running.
    Yields Ray, `run_one_trial` as a task of it, and a function that returns how many to
    run at the same time. (Machines may come and go.)
    """
    ray, is_ours = _started(address, math.ceil((parallel or 1) * (cpus or 1)))
    try:
        resources = ray.cluster_resources()
        gpus = min(1, resources.get("GPU", 0)) if gpus is None else gpus
        if cpus is None:
            is_shared = parallel and is_ours and address is None
            cpus = max(1, resources["CPU"] // parallel) if is_shared else 1
        needed = [(name, n) for name, n in (("CPU", cpus), ("GPU", gpus)) if n]
        for name, number in needed:
            most = max(node["Resources"].get(name, 0) for node in ray.nodes())
            if number > most:
                raise ValueError(
                    f"`{name.lower()}s` must be at most {most:g}, which is what one "
                    f"machine has. Received: {name.lower()}s={number:g}"
                )

        def slots() -> int:
            resources = ray.cluster_resources()
            fits = (resources.get(name, 0) // number for name, number in needed)
            return parallel or max(1, int(min(fits, default=1)))

        yield ray, _task(ray, cpus, gpus), slots
    finally:
        if is_ours:
            ray.shutdown()


def _started(address: str | None, cores: int) -> tuple[Any, bool]:
    """Ray, and whether it was started here, on this machine with so many cores."""
    if address is None:  # Ray reads these variables when it is imported
        # In spite of its name, on Linux too: makes Ray listen on loopback only.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # trials are the main work
    ray = _imported_ray()
    if ray.is_initialized():
        return ray, False
    options: dict[str, Any] = {"address": address, "log_to_driver": False}
    if address is None:
        everywhere = range(os.cpu_count() or 1)
        available = getattr(os, "sched_getaffinity", lambda _: everywhere)
        cores = max(len(available(0)), cores)
        options |= {"address": "local", "num_cpus": cores, "include_dashboard": False}
    with warnings.catch_warnings():  # JAX warns of a fork that only starts a program
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        found: Any = ray.init(logging_level=logging.ERROR, **options)
    if found.dashboard_url:
        print(f"Ray's dashboard: http://{found.dashboard_url}")
    if address is None and found.address_info["node_ip_address"] != "127.0.0.1":
        warnings.warn(
            "Other machines can reach Ray, as it was imported before `search_on_ray`. "
            "Import it later, or set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 first.",
            stacklevel=2,
        )
    return ray, True


def _imported_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "A search in several processes needs Ray: `pip install ray`, or the extra "
            "`ray` of this package"
        ) from error
    return ray


def _task(ray: Any, cpus: float, gpus: float) -> Any:
    """`run_one_trial` as a task, each time in a new process."""
    threads = str(max(1, math.ceil(cpus)))
    variables = {
        "KERAS_BACKEND": keras.backend.backend(),
        # Otherwise each trial would have as many threads as there are cores.
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": threads,
        "PJRT_NPROC": threads,
    }
    if gpus % 1:  # each takes what it needs, not all of the memory
        variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    return ray.remote(
        num_cpus=cpus,
        num_gpus=gpus,
        max_calls=1,
        max_retries=0,  # Ray would not count those from lack of memory
        runtime_env={"env_vars": variables},
    )(run_one_trial)


class _OneTrial(keras_tuner.Oracle):
    """Gives a tuner one trial, and keeps its reports for the oracle of the search."""

    def __init__(self, trial: Trial, objective: Any, tuner_id: str):
        super().__init__(objective, max_trials=1)
        self.trials[trial.trial_id] = self.ongoing_trials[tuner_id] = trial
        self.reports: list[tuple[dict[str, float], int]] = []

    def update_trial(self, trial_id: str, metrics: dict, step: int = 0) -> Trial:
        values = {name: float(value) for name, value in metrics.items()}
        for name, value in values.items():
            self.trials[trial_id].metrics.update(name, value, step)
        self.reports.append((values, step))
        return self.trials[trial_id]

    def end_trial(self, trial: Trial) -> None:
        self.ongoing_trials = {}


def run_one_trial(inputs: tuple, state: dict) -> tuple[list, dict]:
    """Runs a trial; returns its reports (metrics and step) and its final state.

    `inputs` are the tuner, its objective and seed, Keras' dtype policy and arguments of
    `tuner.search`. A `FatalError` of Keras Tuner ends the whole search.
    """
    tuner, objective, seed, policy, fit_args, fit_kwargs = inputs
    trial = Trial.from_state(state)
    folder = Path(tuner.project_dir, f"trial_{trial.trial_id}")
    if not (folder / "trial.json").exists():
        raise keras_tuner.errors.FatalRuntimeError(
            "`directory` of the tuner must be a folder that all machines see; "
            f"{socket.gethostname()} does not see it. Received: {tuner.project_dir}"
        )
    keras.config.set_dtype_policy(policy)
    seeds = np.random.SeedSequence([seed, *trial.trial_id.encode()])
    keras.utils.set_random_seed(int(seeds.generate_state(1)[0]))
    tuner.oracle = _OneTrial(trial, objective, tuner.tuner_id)
    tuner.save = lambda: None  # the driver saves
    if _keeps_checkpoints(tuner):
        fit_kwargs = {**fit_kwargs, "out": folder / "training"}
    with lock_folder(folder, seconds=_PATIENCE):
        tuner.search(*fit_args, **fit_kwargs)
    return tuner.oracle.reports, trial.get_state()


def _keeps_checkpoints(tuner: Any) -> bool:
    """Whether the hypermodel takes a folder in which a trial resumes."""
    fit = getattr(tuner.hypermodel, "fit", lambda: None)
    is_one_training = getattr(tuner, "executions_per_trial", 1) == 1
    return is_one_training and "out" in inspect.signature(fit).parameters
