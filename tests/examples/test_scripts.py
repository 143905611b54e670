"""The scripts, on a few images."""

import dataclasses
import functools
import re
import sys
from unittest import mock

import numpy as np
import pytest
from scipy.special import logit

from keras_gdrn.data import Shape, random_scenes, rescaled_arrays
from keras_gdrn.models import architecture, from_preset
from tests._commands import cells

PICTURES = ("scale_generalization.png", "scale_selection.png", "sizes.png")


ROWS = {
    "demo": ["six scale channels", "the best published, at each size"],
    "digits": ["plain CNN", "one scale channel", "2 scale channels"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_what_is_trained_and_tested(script, main, tmp_path, monkeypatch, name):
    monkeypatch.setattr(script(name), "WIDTHS", (4, 6))
    printed, out = main(script(name), "--quick", "--seed", 3), tmp_path / "runs" / name
    table = (out / "results.md").read_text(encoding="utf-8")
    assert table in printed
    assert [title for title, *_ in cells(table)[2:]] == ROWS[name]
    curves = "accuracy.png" if name == "demo" else PICTURES[0]
    assert all((out / p).stat().st_size > 1000 for p in (curves, *PICTURES[1:]))


@pytest.fixture
def small(tmp_path):
    """A small network for digits, `model.keras`, whose answer is always 3."""
    model = architecture("digits", widths=(2, 2))
    head = model.get_layer("scale_channels").network.get_layer("head")
    head.bias.assign(99.0 * np.eye(10)[3])
    model.save(tmp_path / "model.keras")
    return model


def test_a_network_is_tested(script, main, small, tmp_path):
    few = ("--limit", 6, "--factors", 1, 2, "--out", "found")
    printed = main(script("evaluate"), "model.keras", "--dataset", "digits", *few)
    assert re.search(r"\| network .*\| +1 \| +2 \|\n.*\n.*0\.\d{3} \|", printed)
    assert all((tmp_path / "found" / p).stat().st_size > 1000 for p in PICTURES)


def test_a_data_set_is_shown(paper, main, tmp_path, monkeypatch):
    module = paper("show_datasets")
    plot = mock.Mock(wraps=module.plot_image_grid)
    monkeypatch.setattr(module, "plot_image_grid", plot)
    main(module, "--dataset", "digits", "--out", "here")
    assert (tmp_path / "here/digits.png").stat().st_size > 10_000
    ((training, twice, sizes),) = plot.call_args.args
    expected, labels = rescaled_arrays("digits", "train", limit=200)
    for label, (name, image) in enumerate(training):
        assert name == str(label)
        np.testing.assert_array_equal(image, expected[np.argmax(labels == label)])
    assert len(twice) == 10 and len(sizes) == 9


def test_kernels_and_files_of_the_authors_are_shown(paper, main, tmp_path):
    module = paper("show_datasets")
    main(module, "--kernels", "--out", "here")
    assert (tmp_path / "here/kernels.png").stat().st_size > 10_000
    with pytest.raises(SystemExit, match="one HDF5 file in h5"):
        main(module, "--dataset", "digits", "--h5", "h5")


def test_a_look_inside(paper, main, small, tmp_path, monkeypatch):
    module = paper("look_inside")
    plot = mock.Mock(wraps=module.plot_activation_maps)
    monkeypatch.setattr(module, "plot_activation_maps", plot)
    monkeypatch.setattr(module, "SEARCHED", 20)
    main(module, "model.keras", "--classes", 7, 3, "--factor", 1, "--out", ".")
    assert plot.call_args.kwargs == {"names": ["3"]}
    pictures = ("activation_maps.png", "effective_filters.png")
    assert all((tmp_path / picture).stat().st_size > 5000 for picture in pictures)
    with pytest.raises(SystemExit, match="recognizes no image of `--classes`"):
        main(module, "model.keras", "--classes", 7, "--factor", 1, "--out", ".")
    with pytest.raises(SystemExit, match="must be from 1 to"):
        main(module, "model.keras", "--layers", 99)


def test_as_the_paper_looks_inside(paper, monkeypatch):
    """Objects of twice the size, where there is no mirror image, and four layers."""
    module = paper("look_inside")
    monkeypatch.setattr(sys, "argv", ["look_inside.py", "model.keras"])
    assert module.parsed_arguments().factor == 2.0
    assert module.SIGMA0 == (0.5, 1.0, 2.0)
    of_18_layers = architecture("stl10", sigma0=(1.0,), widths=(2,) * 9)
    network = module.only_layer(of_18_layers, module.ScaleChannels).network
    filters = module.filters_of(network, [2, 10, 11, 17])
    names = (
        "2: block1.conv1",
        "10: block5.conv1",
        "11: block5.conv2",
        "17: block8.conv2",
    )
    assert tuple(filters) == names


def test_objects_are_read_from_perfect_scores(script):
    detect, made = script("detect"), random_scenes(10, [10, 14, 20, 28], seed=2)
    scores = logit(np.clip(detect.targets(made), 0.01, 0.99))
    found = [detect.found_objects(maps) for maps in scores]
    assert detect.precision_and_recall(found, made.objects) == (1, 1)
    # One class at a place.
    scores = np.full((1, 5, 5, 3), -9.0)
    scores[0, 2, 2] = 3, 1, 2
    assert [shape.kind for shape in detect.found_objects(scores)] == [0]


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


@pytest.mark.parametrize("name", ["detect", "segment"])
def test_maps_are_trained_and_reported(script, main, name, monkeypatch):
    module = script(name)
    monkeypatch.setattr(module, "SIGMA0", (1.4, 2.8))
    monkeypatch.setattr(module, "TEST_SIZES", (14, 28))
    few = ("--scenes", 4, "--tests", 2, "--epochs", 1, "--large", 96)
    printed = main(module, *few)
    assert re.search(r"^ all +[01]\.\d{3}.*\(96×96 in \d+ s\)$", printed, re.M)
    assert re.search(r"^  14 +[01]\.\d{3}", printed, re.M)
    assert re.search(r"^  28 +[01]\.\d{3}.*\(not in training\)$", printed, re.M)


@pytest.mark.slow
def test_digits_help_to_learn_shapes_from_few_images(script, main, monkeypatch):
    """Here with one scale channel, and at its size."""
    module = script("fine_tune")
    single = functools.partial(from_preset, sigma0=(1.0,))
    monkeypatch.setattr(module, "from_preset", single)
    monkeypatch.setattr(module, "FACTORS", (1,))
    printed = main(module, "--images", 20, "--tests", 20, "--epochs", 1)
    found = dict(re.findall(r"^\| (\w+).*\| (\d\.\d+) \|$", printed, re.M))
    assert float(found["digits"]) > 0.6 > float(found["shapes"]) + 0.1, printed
