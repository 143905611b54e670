"""Ray itself, beside a process that has loaded TensorFlow; see test_search_on_ray.py.

The trials train nothing: they leave files, and wait for a moment.
"""

import collections
import contextlib
import importlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import keras_tuner
import numpy as np
import pytest

from keras_gdrn.tuning import _ray_tasks, search_on_ray

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:::ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    # JAX, if another test has loaded it: Ray forks only to start its own programs.
    pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning"),
]


def search(kind, folder, **options):
    """A tuner of its own for each process: pickled by value, for tests are no package.

    A trial leaves the file `TRIAL-PROCESS` while it runs, and `TRIAL-PROCESS.ended`.
    """

    class Waiting(kind):
        def run_trial(self, trial, images, seconds):
            name = Path(self.directory, f"{trial.trial_id}-{os.getpid()}")
            name.write_text(importlib.import_module("ray").util.get_node_ip_address())
            time.sleep(seconds)
            if trial.trial_id == "2":
                raise ValueError("bad luck")
            name.rename(f"{name}.ended")
            threads = int(os.environ["TF_NUM_INTRAOP_THREADS"])
            return float(images.sum()) + threads + trial.hyperparameters.values["a"]

    hp = keras_tuner.HyperParameters()
    hp.Choice("a", list(range(100)))
    named = {"hyperparameters": hp, "directory": folder, "project_name": "p", "seed": 1}
    return Waiting(**named, **options)


@pytest.fixture(autouse=True)
def processes_of_jax(monkeypatch):
    """They load in a third of the time that TensorFlow takes, which is loaded here."""
    pytest.importorskip("jax")
    backend = types.SimpleNamespace(backend=lambda: "jax")
    monkeypatch.setattr(_ray_tasks, "keras", types.SimpleNamespace(backend=backend))


@pytest.fixture(scope="module")
def on_this_machine():
    with _ray_tasks.cluster(None, 2, 1, None):
        yield


def killer(folder, kills):
    """Kills processes at random moments, up to three of each trial."""
    chance, killed = random.Random(kills), collections.Counter()
    while killed.total() < kills:
        time.sleep(chance.uniform(0.05, 0.5))
        running = [path for path in folder.glob("*-*") if path.suffix != ".ended"]
        chance.shuffle(running)
        for path in running[:1]:
            trial, _, process = path.name.partition("-")
            if killed[trial] < 3:
                path.unlink()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
                    killed[trial] += 1


@pytest.mark.parametrize(
    ("kills", "trials"),
    [(1, 3), pytest.param(20, 12, marks=pytest.mark.endurance)],
)
def test_killed_processes(kills, trials, on_this_machine, tmp_path, capsys):
    tuner = search(keras_tuner.RandomSearch, tmp_path, max_trials=trials)
    threading.Thread(target=killer, args=(tmp_path, kills), daemon=True).start()
    images = np.ones(1000, "float32")
    options = {"parallel": 2, "cpus": 1, "gpus": 0, "max_retries": kills}
    search_on_ray(tuner, images, 2.0, **options)
    oracle = tuner.oracle
    assert collections.Counter(oracle.end_order) == dict.fromkeys(oracle.trials, 1)
    assert len(oracle.trials) == trials
    for name, trial in oracle.trials.items():
        if trial.trial_id == "2":
            assert trial.status == "FAILED"
            assert "ValueError: bad luck" in trial.message
        else:
            assert len(list(tmp_path.glob(f"{name}-*.ended"))) == 1
            assert trial.score == 1001 + trial.hyperparameters.values["a"]
    assert f"{kills} processes died" in capsys.readouterr().out


def test_resources_that_are_not_there(on_this_machine, tmp_path):
    tuner = search(keras_tuner.RandomSearch, tmp_path, max_trials=1)
    with pytest.raises(ValueError, match=r"`gpus` must be at most 0, .* gpus=99"):
        search_on_ray(tuner, np.ones(1), 0.0, gpus=99)


def test_what_cannot_be_sent(on_this_machine, tmp_path):
    tuner = search(keras_tuner.RandomSearch, tmp_path, max_trials=1)
    with pytest.raises(TypeError, match="Could not serialize"):
        search_on_ray(tuner, threading.Lock(), 0.0)


def test_no_ray(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    tuner = search(keras_tuner.RandomSearch, tmp_path, max_trials=1)
    with pytest.raises(ImportError, match=r"pip install keras_gdrn\[ray\]"):
        search_on_ray(tuner, np.ones(1), 0.0)


def test_a_trial_that_never_ends_is_interrupted(tmp_path):
    """By Ctrl-C, after which no process is left and the trial is the next one."""
    code = (
        "import sys, keras_tuner, numpy\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_ray import search, search_on_ray\n"
        f"tuner = search(keras_tuner.RandomSearch, {str(tmp_path)!r}, max_trials=1)\n"
        "search_on_ray(tuner, numpy.ones(1), 1e6, parallel=1)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    while not (begun := [path for path in tmp_path.glob("0-*") if path.read_text()]):
        assert driver.poll() is None, driver.stderr.read()
        time.sleep(0.2)
    assert begun[0].read_text() == "127.0.0.1"  # nothing outside can reach it
    driver.send_signal(signal.SIGINT)
    _, error = driver.communicate(timeout=400)
    assert b"KeyboardInterrupt" in error
    process = Path("/proc", begun[0].name.partition("-")[2])
    end = time.monotonic() + 30
    while process.exists() and time.monotonic() < end:
        time.sleep(0.2)
    assert not process.exists()
    tuner = search(keras_tuner.RandomSearch, tmp_path, max_trials=1)
    assert tuner.oracle.create_trial("any").trial_id == "0"
