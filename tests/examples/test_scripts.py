"""The scripts themselves, on a few images, the first time from the command line."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_gdrn.data import h5_report
from tests._commands import ROOT

PICTURES = ("scale_generalization.png", "scale_selection.png", "sizes.png")


def run(script, *options):
    """A process of its own, without the settings of the tests."""
    found = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, str(ROOT / script), *map(str, options)]
    return subprocess.run(
        arguments, env=found, capture_output=True, text=True, encoding="utf-8"
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
def test_demo_runs_quickly(tmp_path):
    done = run("examples/demo.py", "--quick", "--seed", 3, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    results = results_in(tmp_path)
    assert list(results["accuracies"]) == [
        *("plain CNN", "one scale channel", "2 scale channels")
    ]
    assert results["seed"] == 3
    table = (tmp_path / "results.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert table in done.stdout
    assert len({len(line) for line in table.splitlines()}) == 1


@pytest.mark.slow
def test_experiment_in_parts_and_its_table(command, tmp_path):
    out, readme = tmp_path / "run", tmp_path / "README.md"
    options = ("mnist", "--budget", "smoke", "--out", out)
    part = run("examples/reproduce.py", *options, "--max-minutes", 0)
    assert part.returncode == 0, part.stderr
    whole = command("examples/reproduce.py", *options)
    assert whole.returncode == 0, whole.stderr
    assert list(results_in(out)["accuracies"]) == ["mnist, first_stage", "mnist"]
    assert keras.saving.load_model(out / "model.keras").output_shape == (None, 10)
    again = command("examples/reproduce.py", *options)
    assert "This run is complete" in again.stdout
    other = command("examples/reproduce.py", *options, "--seed", 5)
    assert other.returncode == 1
    assert "seed: 0, now 5" in other.stderr

    readme.write_text("a\n<!-- results -->\nold\n<!-- /results -->\nz\n")
    figure = tmp_path / "curves.png"
    files = ("--readme", readme, "--figure", figure)
    table = command("examples/collect.py", out, *files)
    assert table.returncode == 0, table.stderr
    text = readme.read_text(encoding="utf-8")
    assert text.startswith("a\n<!-- results -->\n")
    assert text.endswith("<!-- /results -->\nz\n")
    assert "old" not in text
    assert figure.stat().st_size > 1000
    assert "reproduce.py mnist --budget smoke" in text


def test_experiments_are_listed(command):
    done = command("examples/reproduce.py", "--list")
    assert done.returncode == 0, done.stderr
    assert "cifar10_max_pretrained " in done.stdout


def test_data_set_is_shown(command, tmp_path):
    done = command(
        "examples/show_datasets.py", "--dataset", "digits", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "digits.png").stat().st_size > 10_000


def test_rescaled_files_are_written_once(command, tmp_path):
    options = ("--dataset", "digits", "--limit", 30, "--factors", 1, 2)
    for _ in range(2):
        done = command("examples/make_rescaled.py", *options, "--out", tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(".h5 (") == 3
    assert h5_report(tmp_path).count("size factor") == 2
