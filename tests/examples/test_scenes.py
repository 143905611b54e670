"""The detector, the segmentation head and fine-tuning, on synthetic scenes."""

import dataclasses
import re
import sys

import keras
import numpy as np
import pytest
from scipy.special import logit

TINY = ("--scenes", "4", "--tests", "2", "--epochs", "1")

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="examples are run on TensorFlow"
)


@pytest.fixture
def step_by_step():
    """With graphs here, for many steps are made."""


@pytest.fixture
def scenes(examples):
    import scenes

    return scenes


@pytest.fixture
def detect(examples):
    import detect

    return detect


def test_objects_are_whole_and_apart(scenes):
    made = scenes.make_scenes(20, [10, 20], seed=0)
    assert made.images.shape == (20, 64, 64, 1) and made.images.dtype == np.float32
    assert made.images.min() >= 0 and made.images.max() <= 1
    assert {thing.size for scene in made.things for thing in scene} == {10, 20}
    assert {thing.kind for scene in made.things for thing in scene} == {0, 1, 2}
    for mask, scene in zip(made.masks(), made.things, strict=True):
        assert mask.sum(-1).max() == 1  # no two on one pixel
        assert not mask[[0, -1]].any() and not mask[:, [0, -1]].any()
        for thing in scene:
            assert mask[round(thing.row), round(thing.column), thing.kind] == 1


def test_shapes_grow_with_the_size(scenes):
    for kind in range(3):
        small, large = (
            scenes.Thing(kind, 31.5, 31.5, s).mask().sum() for s in (16, 32)
        )
        assert large == pytest.approx(4 * small, rel=0.1)


def test_images_are_brighter_where_objects_are(scenes):
    made = scenes.make_scenes(5, [20], seed=1)
    inside = made.masks().any(-1)
    assert made.images[inside].min() > made.images[~inside].mean() + 0.1


def test_objects_are_read_from_perfect_scores(scenes, detect):
    made = scenes.make_scenes(10, [10, 14, 20, 28], seed=2)
    scores = logit(np.clip(detect.targets(made), 0.01, 0.99))
    found = [detect.objects(maps) for maps in scores]
    assert detect.precision_and_recall(found, made.things) == (1, 1)


@pytest.mark.parametrize(
    "changed", [{"kind": 1}, {"size": 15.0}, {"row": 33.0}, {"column": 27.0}], ids=str
)
def test_a_wrong_answer_is_none(scenes, detect, changed):
    true = scenes.Thing(0, 30.0, 30.0, 10.0)
    wrong = dataclasses.replace(true, **changed)
    assert detect.precision_and_recall([[true]], [[true]]) == (1, 1)
    assert detect.precision_and_recall([[wrong]], [[true]]) == (0, 0)
    assert detect.precision_and_recall([[true, wrong]], [[true]]) == (0.5, 1)


def test_intersection_over_union(examples):
    from segment import intersection_over_union

    true = np.zeros((1, 4, 4, 2), bool)
    true[0, :2, :, 0] = True
    found = np.roll(true, 1, axis=1)
    assert list(intersection_over_union(found, true)) == [1 / 3, 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["detect", "segment"])
def test_trains_and_reports(examples, name, monkeypatch, capsys):
    script = __import__(name)
    monkeypatch.setattr(script, "SIGMA0", (1.4, 2.8))
    monkeypatch.setattr(script, "TEST_SIZES", (14, 28))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *TINY])
    script.main()
    printed = capsys.readouterr().out
    assert re.search(r"^  14 +[01]\.\d{3}", printed, re.M)
    assert re.search(r"^  28 +[01]\.\d{3}.*\(not in training\)$", printed, re.M)


@pytest.mark.slow
def test_what_was_trained_on_digits_learns_shapes_from_few_images(
    examples, monkeypatch, capsys
):
    import fine_tune

    few = ["--images", "30", "--tests", "20", "--epochs", "2"]
    monkeypatch.setattr(sys, "argv", ["fine_tune.py", *few])
    fine_tune.main()
    rows = re.findall(r"^\| (\w+)(.*) \|$", capsys.readouterr().out, re.M)[1:]
    accuracies = {name: list(map(float, re.findall(r"\d\.\d+", r))) for name, r in rows}
    assert np.mean(accuracies["digits"]) > np.mean(accuracies["shapes"]) + 0.1
    assert min(accuracies["digits"]) > 0.6
