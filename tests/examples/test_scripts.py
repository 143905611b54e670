"""The scripts themselves, from the command line, on a few images."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_gdrn.data import read_h5

PICTURES = ("scale_generalisation.png", "scale_selection.png", "sizes.png")


def run(script, *options):
    found = {**os.environ, "PYTHONPATH": str(script.parents[1])}
    command = [sys.executable, str(script), *map(str, options)]
    return subprocess.run(
        command, env=found, capture_output=True, text=True, encoding="utf-8"
    )


def results_in(out):
    for picture in PICTURES:
        assert (out / picture).stat().st_size > 1000
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    for accuracies in results["accuracies"].values():
        assert np.all((np.array(accuracies) >= 0) & (np.array(accuracies) <= 1))
    np.testing.assert_allclose(np.sum(results["scale_selection"], axis=1), 1)
    assert results["environment"]["keras"] == keras.__version__
    return results


@pytest.mark.slow
def test_demo_runs_quickly(examples, tmp_path):
    done = run(examples / "demo.py", "--quick", "--seed", 3, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    results = results_in(tmp_path)
    assert list(results["accuracies"]) == [
        *("plain CNN", "one scale channel", "2 scale channels")
    ]
    assert results["settings"]["seed"] == 3
    table = (tmp_path / "results.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert table in done.stdout
    assert len({len(line) for line in table.splitlines()}) == 1


@pytest.mark.slow
def test_train_runs_and_completes_once(examples, tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    options = [
        *("--dataset", "digits", "--limit", 40, "--widths", 4, "--sigma0", 1, 2),
        *("--pretrain-epochs", 1, "--epochs", 1, "--factors", 1, 2, "--out", out),
    ]
    done = run(examples / "train.py", *options)
    assert done.returncode == 0, done.stderr
    results = results_in(out)
    assert list(results["accuracies"]) == ["one scale channel", "2 scale channels"]
    assert set(results["seconds"]) == {"pretrain", "train"}
    assert keras.saving.load_model(out / "model.keras").output_shape == (None, 10)

    import train

    monkeypatch.setattr(sys, "argv", ["train.py", *map(str, options)])
    train.main()
    assert "is complete" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--seed", "5"])
    with pytest.raises(SystemExit, match=r"other settings(.|\n)*seed: 0, now 5"):
        train.main()


def test_data_set_is_shown(examples, tmp_path):
    done = run(examples / "show_datasets.py", "--dataset", "digits", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "digits.png").stat().st_size > 10_000


def test_rescaled_files_are_written_once(examples, tmp_path):
    options = ("--dataset", "digits", "--limit", 30, "--factors", 1, 2)
    for _ in range(2):
        done = run(examples / "make_rescaled.py", *options, "--out", tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(".h5 (") == 3
    assert [read_h5(path).factor for path in sorted(tmp_path.iterdir())] == [1, 2, None]
