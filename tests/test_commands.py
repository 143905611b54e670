"""Every command ends with one line, not a traceback, at what does not fit."""

import errno
import importlib
import os
import re
import sys
from pathlib import Path
from unittest import mock

import keras
import pytest

from keras_gdrn.commands import errors_in_one_line

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / name for name in ("examples", "tuning", "benchmarks")]
# `file` is no folder, nothing can be below it; `run` has a damaged results.json.
GIVEN = {
    "examples/collect.py": ["run"],
    "examples/demo.py": ["--quick", "--out", "file/below"],
    "examples/detect.py": ["--scenes", "0"],
    "examples/evaluate.py": ["a.keras", "--dataset", "digits", "--out", "file/below"],
    "examples/fine_tune.py": ["--images", "0"],
    "examples/h5_report.py": ["file/below"],
    "examples/make_rescaled.py": ["--dataset", "digits", "--out", "file/below"],
    "examples/make_trained.py": ["run", "digits"],
    "examples/notebooks/execute.py": ["absent.ipynb"],
    "examples/own_data.py": ["file/below"],
    "examples/predict.py": ["file/below", "file"],
    "examples/reproduce.py": ["mnist", "--budget", "smoke", "--out", "file/below"],
    "examples/segment.py": ["--tests", "-1"],
    "examples/show_datasets.py": ["--dataset", "digits", "--out", "file/below"],
    "tuning/search.py": ["--factors", "1", "--out", "file/below"],
    "benchmarks/covariance.py": ["scores", "--network", "file/below"],
    "benchmarks/data.py": ["--limit", "0"],
    "benchmarks/gpu.py": ["--quick", "--out", "file/below"],
    "benchmarks/peers.py": ["--out", "file/below"],
    "benchmarks/resizers.py": ["--data-dir", "file/below"],
    "benchmarks/run.py": ["--sigmas", "0"],
    "benchmarks/train_cifar10.py": ["file/below", "--out", "out"],
    "benchmarks/windows.py": ["run"],
}


def commands(main=r"^def main\("):
    """The files with a main function, as they are named in GIVEN."""
    return {
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in folder.rglob("*.py")
        if re.search(main, path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_all_commands_are_here():
    assert commands() == set(GIVEN)


def test_all_are_decorated():
    """Also those that argparse keeps from the errors below."""
    assert commands(r"^@errors_in_one_line\(.*\)\ndef main\(") == set(GIVEN)


def of_a_command(module):
    file = getattr(module, "__file__", None)
    return file is not None and any(f in Path(file).parents for f in FOLDERS)


@pytest.fixture
def main(monkeypatch, tmp_path):
    """Runs a command in this process; the modules of each have names of their own."""
    policy = keras.config.dtype_policy()
    others = {n: m for n, m in sys.modules.items() if of_a_command(m)}
    monkeypatch.chdir(tmp_path)

    def run(command, *given):
        path = ROOT / command
        monkeypatch.syspath_prepend(path.parent)
        monkeypatch.setattr(sys, "argv", [path.name, *given])
        forget()
        importlib.import_module(path.stem).main()

    def forget():
        for name in [n for n, m in sys.modules.items() if of_a_command(m)]:
            del sys.modules[name]

    with mock.patch.dict(os.environ):
        yield run
    forget()
    sys.modules.update(others)
    keras.config.set_dtype_policy(policy)


@pytest.mark.parametrize("command", GIVEN)
def test_what_does_not_fit(command, main, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.json").write_text("{")
    with pytest.raises(SystemExit) as stopped:
        main(command, *GIVEN[command])
    if stopped.value.code == 2:  # argparse has written the usage and this line
        error = capsys.readouterr().err.splitlines()[-1]
    else:
        error = stopped.value.code
    assert re.match(r"(error|\w+\.py: error): .", error)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "log.csv"),
        PermissionError(errno.EACCES, "Permission denied", "runs"),
        ValueError("`ratio` must be above 1. Received: ratio=1"),
        FloatingPointError("The loss is not finite"),
        LookupError("one of the command's own"),
    ],
)
def test_errors_of_what_a_command_is_told(error):
    @errors_in_one_line(LookupError)
    def main():
        raise error

    for _ in range(2):
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == f"error: {error}"


def test_errors_of_the_program_are_shown_whole():
    @errors_in_one_line()
    def main():
        raise RuntimeError("a mistake of ours")

    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main()
