"""Every command ends with one line, not a traceback, at what does not fit."""

import argparse
import errno
import re

import pytest

from keras_gdrn.commands import errors_in_one_line, positive
from tests._commands import FOLDERS, ROOT

# `file` is no folder, nothing can be below it; `run` has a damaged results.json.
GIVEN = {
    "examples/demo.py": ["--quick", "--out", "file/below"],
    "examples/detect.py": ["--scenes", "0"],
    "examples/digits.py": ["--quick", "--out", "file/below"],
    "examples/evaluate.py": ["a.keras", "--dataset", "digits"],
    "examples/fine_tune.py": ["--images", "0"],
    "benchmarks/studies/make_trained.py": ["run", "digits"],
    "examples/notebooks/execute.py": ["absent.ipynb"],
    "examples/own_data.py": ["file/below"],
    "examples/paper/look_inside.py": ["file", "--out", "out"],
    "examples/paper/reproduce.py": ["--collect", "run"],
    "examples/paper/show_datasets.py": ["--dataset", "digits", "--out", "file/below"],
    "examples/predict.py": ["file/below", "file"],
    "examples/segment.py": ["--tests", "-1"],
    "tuning/search.py": ["--factors", "1", "--out", "file/below"],
    "benchmarks/gpu/bound.py": ["--largest", "0"],
    "benchmarks/gpu/on_tensorflow.py": ["--batch", "0"],
    "benchmarks/gpu/paper.py": ["--only", "nothing"],
    "benchmarks/gpu/run.py": ["--batch", "0"],
    "benchmarks/studies/mnist_scale.py": ["--out", "file/below"],
    "benchmarks/studies/sampling.py": ["mnist", "--out", "file/below"],
    "benchmarks/studies/peers.py": ["centered", "--out", "file/below"],
    "benchmarks/studies/anywhere.py": ["digits", "--out", "file/below"],
    "benchmarks/studies/natural_peers.py": ["file/below", "digits"],
    "benchmarks/run.py": ["one"],
    "benchmarks/studies/stir.py": ["--out", "file/below"],
    "benchmarks/studies/trained.py": ["digits", "--limit", "0"],
}


def test_all_commands_are_here():
    """Each is decorated, as `argparse` keeps some from the errors below, and called."""
    pattern = (
        r"^@errors_in_one_line\(.*\)\ndef main\((?s:.*)"
        r'^if __name__ == "__main__":\n    main\('
    )
    files = (path for folder in FOLDERS for path in folder.rglob("*.py"))
    texts = {p.relative_to(ROOT).as_posix(): p.read_text("utf-8") for p in files}
    commands = {name for name, text in texts.items() if "def main(" in text}
    found = {n for n, text in texts.items() if re.search(pattern, text, re.M)}
    assert set(GIVEN) == found == commands


@pytest.mark.parametrize("name", GIVEN)
def test_what_does_not_fit(name, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.json").write_text("{")
    done = command(name, *GIVEN[name])
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert re.search(r"^(error|\w+\.py: error): .", done.stderr, re.MULTILINE)


FULL_DISK = (
    "Can't decrement id ref count (file write failed: time = Mon Nov 23\n, "
    "filename = 'a.h5', errno = 28, error message = 'No space left on device')"
)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "log.csv"),
        ValueError("`ratio` must be above 1. Received: ratio=1"),
        FloatingPointError("The loss is not finite"),
        LookupError("one of the command's own"),
        RuntimeError(FULL_DISK),  # of HDF5
        RuntimeError("Can't decrement id ref count (errno = 28)"),
    ],
)
def test_errors_of_what_does_not_fit(error):
    @errors_in_one_line(LookupError)
    def main():
        raise error

    for _ in range(2):
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == f"error: {error}".replace("\n,", " ,")


def test_errors_of_the_program_are_shown_whole():
    with pytest.raises(RuntimeError, match="a mistake of ours"), errors_in_one_line():
        raise RuntimeError("a mistake of ours")


def test_options_are_positive():
    assert (positive(int)("3"), positive(float)("0.5")) == (3, 0.5)
    for text in ("0", "-1", "nan", "inf"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"Received: {text}"):
            positive(float)(text)
