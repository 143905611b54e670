"""What a command is told wrong is an error in one line, not a traceback."""

import errno
import importlib
import re
import sys
import zipfile

import pytest

from keras_gdrn.training import lock_folder


@pytest.fixture
def run(examples, monkeypatch, tmp_path):
    def on(name, *arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            importlib.import_module(name).main()
        assert str(stopped.value).startswith("error: ")
        return str(stopped.value).removeprefix("error: ")

    return on


@pytest.fixture
def a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    return path


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("demo", ("--quick",)),
        ("make_rescaled", ("--dataset", "digits")),
        ("show_datasets", ("--dataset", "digits")),
    ],
)
def test_a_file_where_the_folder_should_be(run, a_file, command, arguments):
    for out in (a_file, a_file / "below"):
        assert str(a_file) in run(command, *arguments, "--out", out)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("demo", ("--quick",)),
        ("evaluate", ("model.keras", "--dataset", "digits")),
        ("reproduce", ("digits_max", "--budget", "smoke")),
    ],
)
def test_one_folder_is_of_one_process(run, command, arguments, tmp_path):
    out = tmp_path / "mine"
    with lock_folder(out):
        assert f"{out} is in use by" in run(command, *arguments, "--out", out)
    assert not list(out.iterdir())


@pytest.mark.parametrize("command", ["make_rescaled", "show_datasets"])
def test_data_that_are_not_there(run, command, tmp_path):
    options = ("--dataset", "cifar10", "--data-dir", tmp_path)
    assert "cifar10 has not been prepared" in run(command, *options)


def test_damaged_results(run, tmp_path):
    (tmp_path / "results.json").write_text("{")
    assert "line 1" in run("collect", tmp_path)


def test_a_full_disk(run, examples, monkeypatch, tmp_path):
    show_datasets = importlib.import_module("show_datasets")

    class Full:
        def savefig(self, path):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(show_datasets, "collage", lambda *_: Full())
    error = run("show_datasets", "--dataset", "digits", "--out", tmp_path)
    assert "No space left" in error and "digits.png" in error


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("own_data", ("photos", "--side", 0)),
        ("own_data", ("photos", "--factors", 1, -2)),
        ("own_data", ("photos", "--epochs", "x")),
        ("evaluate", ("a.keras", "--dataset", "digits", "--canvas", 0)),
        ("evaluate", ("a.keras", "--dataset", "digits", "--factors", "nan")),
        ("make_rescaled", ("--dataset", "digits", "--factors", 0)),
        ("make_rescaled", ("--dataset", "digits", "--limit", -1)),
        ("reproduce", ("digits_max", "--receptive-field", -2)),
        ("reproduce", ("digits_max", "--receptive-field", "nan")),
    ],
)
def test_options_are_checked_at_once(
    examples, monkeypatch, capsys, tmp_path, command, options
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [command, *map(str, options)])
    with pytest.raises(SystemExit):
        importlib.import_module(command).main()
    (option,) = (o for o in options[1:] if str(o).startswith("--") and o != "--dataset")
    assert f"argument {option}: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file .*'model.keras'"),
        (b"junk", "model.keras is no Keras model"),
        ("zip", "model.keras cannot be loaded as a network"),
    ],
)
def test_a_network_that_is_none_claims_no_folder(run, tmp_path, content, message):
    if content == "zip":
        with zipfile.ZipFile(tmp_path / "model.keras", "w") as file:
            file.writestr("config.json", "{")
    elif content:
        (tmp_path / "model.keras").write_bytes(content)
    options = ("model.keras", "--dataset", "digits", "--out", "e")
    assert re.search(message, run("evaluate", *options))
    assert not list((tmp_path / "e").iterdir())


def test_a_network_that_cannot_be_made_claims_no_folder(run, tmp_path):
    options = ("--budget", "smoke", "--canvas", 1, "--out", "e")
    assert "for an image of (1, 1) pixels" in run("reproduce", "digits_max", *options)
    assert not list((tmp_path / "e").iterdir())


def test_no_results(run):
    assert run("collect", "nope", "nor") == "there is no results.json in nope, nor"
