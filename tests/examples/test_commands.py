"""What a command is told wrong is an error in one line, not a traceback."""

import errno
import importlib
import sys

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
    "content",
    [
        *("{", "[]", "[" * 100_000, '{"layers": 3}'),
        *('{"classes": 3}', '{"classes": ["a", {}]}', '{"classes": [{}, []]}'),
        *('{"side": "x"}', '{"side": 0}', '{"side": true}', f'{{"side": {10**30}}}'),
        '{"extension": "wrap"}',
    ],
)
def test_damaged_knowledge_of_a_network(examples, tmp_path, content):
    file = tmp_path / "network.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"network\.json (must have|cannot be read)"):
        importlib.import_module("predict").kept_beside(file)


@pytest.mark.parametrize(
    "options", [("--side", 0), ("--factors", 1, -2), ("--epochs", "x")]
)
def test_options_are_checked_at_once(examples, monkeypatch, capsys, options):
    monkeypatch.setattr(sys, "argv", ["own_data", "photos", *map(str, options)])
    with pytest.raises(SystemExit):
        importlib.import_module("own_data").main()
    assert f"argument {options[0]}: " in capsys.readouterr().err
