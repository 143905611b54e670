"""One chief and its workers, as processes of this machine."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STUBBED = HERE / "stubbed_search.py"
REAL = ROOT / "tuning" / "search.py"
LITTLE = (
    *("--limit", "32", "--validation-limit", "10", "--canvas", "20", "--factors", "1"),
    *("--epochs", "1", "--single-scale-epochs", "1", "--out", "found"),
)
SECONDS = 300  # for what takes few on a machine that is not busy

pytestmark = pytest.mark.slow


class Machines:
    """Processes that run one command in a folder, and what they have printed."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.chief = f"127.0.0.1:{free.getsockname()[1]}"

    def start(self, role, *options, script=STUBBED):
        given = (*LITTLE, "--role", role, "--chief", self.chief, *map(str, options))
        searched = os.pathsep.join([str(ROOT), str(ROOT / "tuning")])
        with open(self.log(len(self.processes)), "w") as log:
            process = subprocess.Popen(
                [sys.executable, "-u", script, *given],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": searched},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    def log(self, number):
        return self.folder / f"output-{number}.txt"

    def printed(self, process):
        return self.log(self.processes.index(process)).read_text()

    def wait_until(self, condition):
        end = time.monotonic() + SECONDS
        while not (found := condition()):
            assert time.monotonic() < end, self.report()
            time.sleep(0.1)
        return found

    def wait_for_text(self, process, text):
        def printed_or_ended():
            return text in self.printed(process) or process.poll() is not None

        self.wait_until(printed_or_ended)
        assert text in self.printed(process), self.report()

    def ends_with(self, status, *processes):
        for process in processes:
            self.wait_until(lambda process=process: process.poll() is not None)
            assert process.returncode == status, self.report()

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    def runs(self, what):
        """(trial, process id) of the runs that have begun or ended."""
        names = [path.stem.split("-") for path in self.folder.glob(f"*.{what}")]
        return sorted((trial, int(process)) for trial, process, _ in names)

    def report(self):
        texts = [self.printed(process)[-3000:] for process in self.processes]
        return "\n\n=====\n".join(texts)


@pytest.fixture
def machines(tmp_path):
    made = Machines(tmp_path)
    yield made
    for process in made.processes:
        made.kill(process)


def test_search_outlives_a_killed_chief_and_a_killed_worker(machines):
    options = ("--max-trials", 3)
    chief = machines.start("chief", *options)
    workers = [machines.start("worker", *options) for _ in range(2)]
    begun = machines.wait_until(
        lambda: len(found := machines.runs("begun")) > 1 and found
    )
    at = {process: trial for trial, process in begun}
    assert sorted(at) == sorted(worker.pid for worker in workers)
    assert sorted(at.values()) == ["0", "1"]

    machines.kill(chief)
    chief = machines.start("chief", *options, "--patience", 0.2)
    machines.wait_for_text(chief, "Listening at")
    lost, other = workers
    machines.kill(lost)
    # So long that the other's trial would be given up too if it gave no sign of life.
    machines.wait_for_text(chief, "has been silent for 0.2 minutes")
    (machines.folder / "go").touch()
    machines.ends_with(0, chief, other)

    # Each has ended once, also the one that was under way when the chief was killed.
    assert machines.runs("ended") == [(trial, other.pid) for trial in "012"]
    again = (at[lost.pid], other.pid)
    assert machines.runs("begun") == sorted([*begun, again, ("2", other.pid)])
    trials = machines.folder / "found" / "trials"
    oracle = json.loads((trials / "oracle.json").read_text())
    assert sorted(oracle["end_order"]) == ["0", "1", "2"]
    states = sorted(path.name for path in trials.glob("*.json"))
    assert states == ["oracle.json", "tuner0.json"]
    assert "3 trials: 3 trained" in machines.printed(chief)
    assert (machines.folder / "found" / "model.keras").exists()


def test_the_command_as_it_is(machines):
    options = ("--only", "ratio", "--max-trials", 1)
    early = machines.start("worker", *options, script=REAL)
    machines.wait_for_text(early, "Waiting for the chief")
    chief = machines.start("chief", *options, script=REAL)
    machines.ends_with(0, chief, early)
    assert "1 trials: 1 trained" in machines.printed(chief)
    assert (machines.folder / "found" / "trials.md").exists()
    for process in (chief, early):  # as Keras Tuner would print with every call
        assert "\n3\n" not in machines.printed(process)
