"""Ray, as a search needs it: on this machine alone, or a cluster."""

import contextlib
import logging
import math
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras

_HERE = "127.0.0.1"


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
        self.ray, self.parallel = ray, parallel
        gpus = min(1, self._total("GPU")) if gpus is None else gpus
        if cpus is None:
            at_once = parallel or (self._total("GPU") // gpus if gpus else math.inf)
            cpus = max(1, self._total("CPU") // max(1, at_once)) if is_local else 1
        self.needed = {"CPU": cpus, "GPU": gpus}
        self._check(is_local)

    def slots(self) -> int:
        """How many trials to run at the same time. Machines may come and go."""
        fits = [self._total(name) // n for name, n in self.needed.items() if n]
        return self.parallel or max(1, int(min(fits, default=1)))

    def task(self, function: Callable) -> Any:
        """A function that runs in a fresh process each time."""
        threads = str(max(1, math.ceil(self.needed["CPU"])))
        variables = {
            "KERAS_BACKEND": keras.backend.backend(),
            # Otherwise each trial would have as many threads as there are cores.
            "TF_NUM_INTRAOP_THREADS": threads,
            "TF_NUM_INTEROP_THREADS": threads,
            "PJRT_NPROC": threads,
        }
        if self.needed["GPU"] % 1:  # each takes what it needs, not all of the memory
            variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
            variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        return self.ray.remote(
            num_cpus=self.needed["CPU"],
            num_gpus=self.needed["GPU"],
            max_calls=1,
            max_retries=0,  # Ray would not count those for want of memory
            runtime_env={"env_vars": variables},
        )(function)

    def _total(self, name: str) -> float:
        return self.ray.cluster_resources().get(name, 0)

    def _check(self, is_local: bool) -> None:
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        needed = self.needed.items()
        if any(all(node.get(n, 0) >= c for n, c in needed) for node in nodes):
            return
        message = (
            f"a trial needs {self.needed['CPU']:g} CPU cores and "
            f"{self.needed['GPU']:g} GPUs, and no machine has both. There are "
            f"{self._total('CPU'):g} and {self._total('GPU'):g}"
        )
        if is_local:
            raise ValueError(f"`cpus` and `gpus` must fit: {message}")
        print(f"Waiting for other machines: {message}")


@contextlib.contextmanager
def cluster(
    address: str | None, parallel: int | None, cpus: float | None, gpus: float | None
) -> Iterator[Cluster]:
    """Ray at an address, or on this machine until the context ends.

    If this process has called `ray.init` already, that one is used, and left running.
    """
    ray = _imported(address is None)
    ours = not ray.is_initialized()
    if ours:
        _start(ray, address, math.ceil((parallel or 1) * (cpus or 1)))
    try:
        yield Cluster(ray, parallel, cpus, gpus, ours and address is None)
    finally:
        if ours:
            ray.shutdown()


def _start(ray: Any, address: str | None, cores: int) -> None:
    options = {"address": address, "log_to_driver": False}
    if address is None:
        everywhere = range(os.cpu_count() or 1)
        available = getattr(os, "sched_getaffinity", lambda _: everywhere)
        cores = max(len(available(0)), cores)
        options |= {"address": "local", "num_cpus": cores, "include_dashboard": False}
    with warnings.catch_warnings():  # JAX warns of a fork: it only starts a program
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
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
