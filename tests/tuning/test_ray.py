"""Ray itself, in a process that has loaded TensorFlow; see test_search_on_ray.py.

The trials train nothing: they leave files, and wait for a moment. Ray is made to
believe that there is a GPU.
"""

import collections
import contextlib
import functools
import importlib
import json
import os
import random
import signal
import sys
import threading
import time
import types
from pathlib import Path

import keras_tuner
import numpy as np
import pytest

from keras_gdrn.tuning import _ray_tasks, search_on_ray

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:::ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    # JAX, if another test has loaded it: Ray forks only to start its own programs.
    pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning"),
]
IMAGES = np.ones(1000, "float32")


def search(folder, run, trials=2):
    """A tuner of its own for each process: pickled by value, for tests are no package.

    A trial leaves the file `TRIAL-PROCESS` while it runs, and `TRIAL-PROCESS.ended`.
    """

    class Waiting(keras_tuner.RandomSearch):
        def run_trial(self, trial, images):
            name = Path(self.directory, f"{trial.trial_id}-{os.getpid()}")
            address = importlib.import_module("ray").util.get_node_ip_address()
            partial = name.with_suffix(".partial")
            about = {"process": os.getpid(), "address": address, "niceness": os.nice(0)}
            partial.write_text(json.dumps({**about, **os.environ}))
            partial.rename(name)
            run(trial.trial_id, name.parent)
            name.rename(f"{name}.ended")
            return float(images.sum()) + trial.hyperparameters.values["a"]

    hp = keras_tuner.HyperParameters()
    hp.Choice("a", list(range(100)))
    named = {"hyperparameters": hp, "directory": folder, "project_name": "p", "seed": 1}
    return Waiting(**named, max_trials=trials)


@pytest.fixture(autouse=True)
def processes_of_numpy(monkeypatch):
    """They load in a third of the time that TensorFlow takes, which is loaded here."""
    backend = types.SimpleNamespace(backend=lambda: "numpy")
    monkeypatch.setattr(_ray_tasks, "keras", types.SimpleNamespace(backend=backend))


@pytest.fixture(scope="module")
def on_this_machine():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray, "init", functools.partial(ray.init, num_gpus=1))
        with _ray_tasks.cluster(None, 2, 2, None):
            assert ray.cluster_resources()["CPU"] >= 4
            yield


def wait_for(found):
    """What a function returns, as soon as there is something."""
    end = time.monotonic() + 300
    while not (result := found()) and time.monotonic() < end:
        time.sleep(0.05)
    assert result
    return result


def test_two_share_a_gpu_one_is_killed_and_one_never_ends(
    on_this_machine, tmp_path, capsys, request
):
    """The latter is interrupted by Ctrl-C, and is the next one afterwards."""
    # A shell has programs in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def run(trial, folder):
        while not (folder / "go").exists() or trial == "1":
            time.sleep(0.05)

    seen = {}

    def user():
        try:
            for n in "01":
                (file,) = wait_for(lambda n=n: list(tmp_path.glob(f"{n}-*[0-9]")))
                seen[n] = json.loads(file.read_text())
            os.kill(seen["0"]["process"], signal.SIGKILL)
            (tmp_path / "go").touch()
            wait_for(lambda: tuner.oracle.end_order)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    tuner, thread = search(tmp_path, run), threading.Thread(target=user)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        search_on_ray(tuner, IMAGES, cpus=1.5, gpus=0.5)
    thread.join()
    for about in seen.values():  # at the same time
        expected = {
            "CUDA_VISIBLE_DEVICES": "0",
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "TF_NUM_INTRAOP_THREADS": "2",
            "TF_NUM_INTEROP_THREADS": "2",
            "PJRT_NPROC": "2",
            "KERAS_BACKEND": "numpy",
            "address": "127.0.0.1",  # nothing outside can reach it
            "niceness": os.nice(0),
        }
        assert expected.items() <= about.items()
        process = Path("/proc", str(about["process"]))
        wait_for(lambda process=process: not process.exists())
    assert len(seen) == 2
    assert tuner.oracle.end_order == ["0"]
    assert len(list(tmp_path.glob("0-*.ended"))) == 1
    trial = tuner.oracle.trials["0"]
    assert trial.score == 1000 + trial.hyperparameters.values["a"]
    assert "1 processes died" in capsys.readouterr().out
    assert search(tmp_path, run).oracle.create_trial("any").trial_id == "1"


@pytest.mark.endurance
def test_killed_at_random_moments(on_this_machine, tmp_path, capsys):
    """Twenty processes of twelve trials."""
    kills, killed, chance = 20, collections.Counter(), random.Random(20)

    def killer():
        while killed.total() < kills:
            time.sleep(chance.uniform(0.05, 0.5))
            for file in list(tmp_path.glob("*-*[0-9]"))[:1]:
                trial, process = file.name.split("-")
                with contextlib.suppress(OSError):  # it has ended
                    if killed[trial] < 3:
                        file.unlink()
                        os.kill(int(process), signal.SIGKILL)
                        killed[trial] += 1

    threading.Thread(target=killer, daemon=True).start()
    tuner = search(tmp_path, lambda trial, folder: time.sleep(2), trials=12)
    options = {"parallel": 2, "cpus": 1, "gpus": 0, "max_retries": kills}
    search_on_ray(tuner, IMAGES, **options)
    assert len(tuner.oracle.trials) == 12
    assert sorted(tuner.oracle.end_order) == sorted(tuner.oracle.trials)
    assert len(list(tmp_path.glob("*.ended"))) == 12
    assert all(t.status == "COMPLETED" for t in tuner.oracle.trials.values())
    assert f"{kills} processes died" in capsys.readouterr().out


def test_what_does_not_fit(on_this_machine, tmp_path, monkeypatch):
    tuner = search(tmp_path, None)
    with pytest.raises(ValueError, match=r"`gpus` must be at most 1, .* gpus=99"):
        search_on_ray(tuner, IMAGES, gpus=99)
    with pytest.raises(TypeError, match="Could not serialize"):
        search_on_ray(tuner, threading.Lock())
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install ray"):
        search_on_ray(tuner, IMAGES)
