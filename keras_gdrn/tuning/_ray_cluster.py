"""Ray, as a search needs it: on this machine alone, or a cluster."""

import contextlib
import logging
import math
import os
import secrets
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

_HERE = "127.0.0.1"
_ROOM = 128 * 2**20  # bytes of Ray's object store beside the data


class Cluster:
    """What runs the trials.

    Args:
        ray: The module.
        parallel, cpus, gpus: As `search_on_ray`, where `None` is the default.
        is_local: Whether it is of this machine alone.
    """

    def __init__(
        self,
        ray: Any,
        parallel: int | None,
        cpus: float | None,
        gpus: float | None,
        is_local: bool,
    ):
        self.ray = ray
        self.parallel = parallel
        self.is_local = is_local
        # A process that died, not an error that its trial has raised.
        self.died = ray.exceptions.RayError
        self.gpus = min(1, self._total("GPU")) if gpus is None else gpus
        self.cpus = self._share() if cpus is None else cpus
        self._check_resources()

    def slots(self) -> int:
        """How many trials to run at the same time. Machines may come and go."""
        if self.parallel:
            return self.parallel
        needed = {"CPU": self.cpus, "GPU": self.gpus}
        fits = [self._total(name) / count for name, count in needed.items() if count]
        return max(1, math.floor(min(fits, default=1)))

    def put(self, value: Any) -> Any:
        """Sends a value once."""
        try:
            return self.ray.put(value)
        except TypeError as error:
            raise ValueError(
                "What a search on Ray is given must be picklable: arrays, or a "
                "function that makes a `tf.data.Dataset`, but no data set. "
                f"Received: {str(error).splitlines()[0]}"
            ) from error

    def task(self, function: Callable) -> Any:
        """A function that runs in a fresh process each time, and yields."""
        threads = str(max(1, math.ceil(self.cpus)))
        variables = {
            "KERAS_BACKEND": keras.backend.backend(),
            # Otherwise each trial would have as many threads as there are cores.
            **dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "PJRT_NPROC"), threads),
            "TF_NUM_INTEROP_THREADS": threads,
        }
        if self.gpus % 1:  # each takes what it needs, not all of the memory
            variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
            variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        return self.ray.remote(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_calls=1,
            max_retries=0,  # the search counts them, also those for want of memory
            num_returns="streaming",
            runtime_env={"env_vars": variables},
        )(function)

    def wait(self, generators: list) -> list:
        """Those of running tasks that have something to tell."""
        if not generators:
            return []
        return self.ray.wait(generators, timeout=1, fetch_local=False)[0]

    def get(self, reference: Any) -> Any:
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from error

    def cancel(self, generators: list) -> None:
        for generator in generators:
            with contextlib.suppress(self.died):
                self.ray.cancel(generator, force=True)

    def check_folder(self, folder: Path) -> None:
        """Raises an error if a machine does not see a folder, or cannot write there."""
        if self.is_local:
            return
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        token = secrets.token_hex(8)
        sign = folder / f"partial-{token}"
        sign.touch()
        task = self.ray.remote(num_cpus=0, max_retries=0)(_answer)
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        asked = {}
        for node in nodes:
            where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            answer = f"{sign}-{node['NodeID']}"
            found = task.options(scheduling_strategy=where).remote(str(sign), answer)
            asked[node["NodeManagerHostname"]] = found, Path(answer)
        blind = [
            name
            for name, (found, answer) in asked.items()
            if not self.ray.get(found) or not answer.exists()
        ]
        for path in folder.glob(f"partial-{token}*"):
            path.unlink()
        if blind:
            raise FileNotFoundError(
                "The folder of the search must be one that all machines see, and can "
                f"write; these do not: {', '.join(blind)}. Received: {folder}"
            )

    def _total(self, name: str) -> float:
        return self.ray.cluster_resources().get(name, 0)

    def _share(self) -> float:
        if not self.is_local:
            return 1
        trials = self.parallel or (self._total("GPU") // self.gpus if self.gpus else 0)
        return max(1, self._total("CPU") // trials) if trials else 1

    def _check_resources(self) -> None:
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        needed = {"CPU": self.cpus, "GPU": self.gpus}
        if any(all(node.get(n, 0) >= c for n, c in needed.items()) for node in nodes):
            return
        message = (
            f"a trial needs {self.cpus:g} CPU cores and {self.gpus:g} GPUs, and no "
            f"machine has both. There are {self._total('CPU'):g} and "
            f"{self._total('GPU'):g}"
        )
        if self.is_local:
            raise ValueError(f"`cpus` and `gpus` must fit: {message}")
        print(f"Waiting for other machines: {message}")


@contextlib.contextmanager
def cluster(
    address: str | None,
    parallel: int | None,
    cpus: float | None,
    gpus: float | None,
    given: Any,
) -> Iterator[Cluster]:
    """Ray at an address, or on this machine until the context ends.

    If this process has called `ray.init` already, that one is used, and left running.
    """
    if parallel is not None and parallel < 1:
        raise ValueError(f"`parallel` must be at least 1. Received: {parallel}")
    ray = _imported(address is None)
    ours = not ray.is_initialized()
    is_local = ours and address is None
    if ours:
        _start(ray, address, parallel, cpus, _bytes(given))
    try:
        yield Cluster(ray, parallel, cpus, gpus, is_local)
    finally:
        if ours:
            ray.shutdown()


def _start(
    ray: Any, address: str | None, parallel: int | None, cpus: float | None, data: int
) -> None:
    options = {"address": address, "log_to_driver": False}
    if address is None:
        everywhere = range(os.cpu_count() or 1)
        available = getattr(os, "sched_getaffinity", lambda _: everywhere)
        wanted = math.ceil((parallel or 1) * (cpus or 1))
        options |= {
            "address": "local",
            "num_cpus": max(len(available(0)), wanted),
            "object_store_memory": _ROOM + data,
            "include_dashboard": False,
        }
    found = ray.init(logging_level=logging.ERROR, **options)
    if found.dashboard_url:
        print(f"Ray's dashboard: http://{found.dashboard_url}")
    if address is None and found.address_info["node_ip_address"] != _HERE:
        warnings.warn(
            "Other machines can reach Ray, which was imported before. Import it after "
            "`search_on_ray`, or set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 before.",
            stacklevel=2,
        )


def _imported(local: bool) -> Any:
    """Ray. It reads these variables when it is imported."""
    if local:
        # In spite of its name, on Linux too: it listens on the loopback address alone.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # trials are the work
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "A search in several processes needs Ray: `pip install keras_gdrn[ray]`"
        ) from error
    return ray


def _bytes(given: Any) -> int:
    """What arrays take, about."""
    arrays = keras.tree.flatten(given)
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def _answer(sign: str, answer: str) -> bool:
    """On another machine: whether it sees a file, beside which it writes one."""
    if not Path(sign).exists():
        return False
    with contextlib.suppress(OSError):
        Path(answer).touch()
    return True
