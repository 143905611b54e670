"""The scripts, on a few images."""

import dataclasses
import importlib
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
from scipy.special import logit

from keras_gdrn.data import Shape, h5_report, random_scenes, rescaled_arrays
from keras_gdrn.models import architecture
from tests._commands import ROOT

PICTURES = ("scale_generalization.png", "scale_selection.png", "sizes.png")


@pytest.fixture
def script(examples):
    return importlib.import_module


@pytest.mark.slow
def test_the_demo_from_the_command_line(tmp_path, monkeypatch):
    """A process of its own, without the settings of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, ROOT / "examples/demo.py", "--quick", "--seed", "3"]
    options = {"cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run(command, **options, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "runs" / "demo"
    table = (out / "results.md").read_text(encoding="utf-8")
    assert table in done.stdout
    rows = [line.split("|")[1].strip() for line in table.splitlines()]
    assert rows[2:] == ["plain CNN", "one scale channel", "2 scale channels"]
    assert all((out / picture).stat().st_size > 1000 for picture in PICTURES)


@pytest.mark.slow
def test_a_network_is_tested(script, main, tmp_path, capsys):
    architecture("digits", widths=(2, 2)).save(tmp_path / "model.keras")
    few = ("--limit", 6, "--factors", 1, 2, "--out", "found")
    main(script("evaluate"), "model.keras", "--dataset", "digits", *few)
    assert re.search(
        r"\| network .*\| +1 \| +2 \|\n.*\n.*0\.\d{3} \|", capsys.readouterr().out
    )
    assert all((tmp_path / "found" / p).stat().st_size > 1000 for p in PICTURES)


def test_a_data_set_is_shown(script, main, tmp_path, monkeypatch):
    module, drawn = script("show_datasets"), []
    plot = module.plot_image_grid
    monkeypatch.setattr(module, "plot_image_grid", lambda r: drawn.extend(r) or plot(r))
    main(module, "--dataset", "digits", "--out", "here")
    assert (tmp_path / "here/digits.png").stat().st_size > 10_000
    training, twice, sizes = drawn
    expected, labels = rescaled_arrays("digits", "train", limit=200)
    for label, (name, image) in enumerate(training):
        assert name == str(label)
        np.testing.assert_array_equal(image, expected[np.argmax(labels == label)])
    assert len(twice) == 10 and len(sizes) == 9


def test_rescaled_files_are_written_once(script, main, tmp_path, capsys):
    options = ("--dataset", "digits", "--limit", 30, "--factors", 1, 2, "--out", ".")
    for _ in range(2):
        main(script("make_rescaled"), *options)
        assert capsys.readouterr().out.count(".h5 (") == 3
    assert h5_report(tmp_path).count("size factor") == 2


@pytest.mark.slow
def test_a_look_inside(script, main, tmp_path, monkeypatch):
    module, shown = script("look_inside"), []
    draw = module.plot_activation_maps
    monkeypatch.setattr(
        module,
        "plot_activation_maps",
        lambda *given, names: shown.extend(names) or draw(*given, names=names),
    )
    main(module, "digits", "--classes", 7, 3, "--out", ".")
    assert shown == ["7", "3"]
    pictures = ("activation_maps.png", "effective_filters.png")
    assert all((tmp_path / picture).stat().st_size > 5000 for picture in pictures)
    architecture("digits", widths=(2, 2), name="untrained").save("model.keras")
    with pytest.raises(SystemExit, match="must know one of"):
        main(module, "model.keras", "--classes", 7, "--out", ".")


def test_objects_are_read_from_perfect_scores(script):
    detect, made = script("detect"), random_scenes(10, [10, 14, 20, 28], seed=2)
    scores = logit(np.clip(detect.targets(made), 0.01, 0.99))
    found = [detect.found_objects(maps) for maps in scores]
    assert detect.precision_and_recall(found, made.objects) == (1, 1)


@pytest.mark.parametrize(
    "changed", [{"kind": 1}, {"size": 15.0}, {"row": 33.0}, {"column": 27.0}], ids=str
)
def test_a_wrong_answer_is_none(script, changed):
    score, true = script("detect").precision_and_recall, Shape(0, 30.0, 30.0, 10.0)
    wrong = dataclasses.replace(true, **changed)
    assert score([[true]], [[true]]) == (1, 1)
    assert score([[wrong]], [[true]]) == (0, 0)
    assert score([[true, wrong]], [[true]]) == (0.5, 1)


def test_intersection_over_union(script):
    true = np.zeros((1, 4, 4, 2), bool)
    true[0, :2, :, 0] = True
    found = np.roll(true, 1, axis=1)
    assert list(script("segment").intersection_over_union(found, true)) == [1 / 3, 0]


class TestWithGraphs:
    """Many steps are made: on TensorFlow they take too long without graphs."""

    pytestmark = pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="examples run on TensorFlow"
    )

    @pytest.fixture
    def step_by_step(self):
        """With graphs here."""

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["detect", "segment"])
    def test_trains_and_reports(self, script, main, name, monkeypatch, capsys):
        module = script(name)
        monkeypatch.setattr(module, "SIGMA0", (1.4, 2.8))
        monkeypatch.setattr(module, "TEST_SIZES", (14, 28))
        main(module, "--scenes", 4, "--tests", 2, "--epochs", 1)
        printed = capsys.readouterr().out
        assert re.search(r"^  14 +[01]\.\d{3}", printed, re.M)
        assert re.search(r"^  28 +[01]\.\d{3}.*\(not in training\)$", printed, re.M)

    @pytest.mark.slow
    def test_digits_help_to_learn_shapes_from_few_images(self, script, main, capsys):
        main(script("fine_tune"), "--images", 30, "--tests", 20, "--epochs", 2)
        rows = re.findall(r"^\| (\w+)(.*) \|$", capsys.readouterr().out, re.M)[1:]
        found = {name: list(map(float, re.findall(r"\d\.\d+", r))) for name, r in rows}
        assert np.mean(found["digits"]) > np.mean(found["shapes"]) + 0.1
        assert min(found["digits"]) > 0.6


@pytest.mark.parametrize("name", ["make_rescaled", "show_datasets"])
def test_data_that_are_not_there(script, main, name, tmp_path):
    with pytest.raises(SystemExit, match="cifar10 has not been prepared"):
        main(script(name), "--dataset", "cifar10", "--data-dir", tmp_path)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("own_data", ("photos", "--side", 0)),
        ("evaluate", ("a.keras", "--dataset", "digits", "--factors", "nan")),
        ("make_rescaled", ("--dataset", "digits", "--limit", -1)),
    ],
)
def test_options_are_checked_at_once(script, main, name, options, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(script(name), *options)
    (option,) = (o for o in options[1:] if str(o).startswith("--") and o != "--dataset")
    assert f"argument {option}: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
