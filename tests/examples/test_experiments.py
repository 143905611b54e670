"""The paper's experiments: that all are there, and that each runs."""

import dataclasses
import json
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.models import ARCHITECTURES, SIX_SCALES
from keras_gdrn.training import RECIPES, Recipe, Stage

# So that their names can be parameters.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import budgets
from experiments import EXPERIMENTS, POOLINGS, RESCALED, Experiment


@pytest.fixture
def within(examples):
    from budgets import within

    return within


@pytest.fixture
def runner(examples):
    import runner

    return runner


def test_each_experiment_of_the_paper_is_there():
    suffixes = ("", "_separable", "_dense", "_pretrained")
    for dataset in RESCALED:
        for pooling in POOLINGS:
            for suffix in suffixes:
                assert f"{dataset}_{pooling}{suffix}" in EXPERIMENTS
        for suffix in ("single", "without_residual", "plain"):
            assert f"{dataset}_{suffix}" in EXPERIMENTS
    smoothing = [name for name in EXPERIMENTS if name.endswith("label_smoothing")]
    assert len(smoothing) == 9 + 1
    assert sum("zero_order" in name for name in EXPERIMENTS) == 3 + 1


def test_networks_and_recipes_are_the_papers(within):
    cifar10 = within(EXPERIMENTS["cifar10_max"], "full")
    architecture = ARCHITECTURES["rescaled_cifar10"]
    assert cifar10.network == dataclasses.replace(architecture, receptive_field=None)
    (stage,) = cifar10.stages
    assert stage.recipe == RECIPES["rescaled_cifar10"]
    assert len(stage.sigma0) == 6
    (stage,) = EXPERIMENTS["stl10_average"].stages
    assert stage.recipe == RECIPES["rescaled_stl10"]
    assert not EXPERIMENTS["stl10_without_zero_order"].network.zero_order
    assert len(EXPERIMENTS["cifar10_max_dense"].test_sigma0) == 12
    assert EXPERIMENTS["cifar10_single"].stages[0].recipe.batch_size == 128


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_full_budget_has_whole_maps_and_is_fast_but_for_them(name, within):
    full, fast = (within(EXPERIMENTS[name], budget) for budget in ("full", "fast"))
    assert full.network.receptive_field is None
    windows = dataclasses.replace(full.network, receptive_field="auto")
    assert dataclasses.replace(full, network=windows) == fast == EXPERIMENTS[name]
    if full.dataset in (*RESCALED, "stl10_original"):
        assert full.network.boundary == "zero" and not full.network.subpixel
        assert full.network.head_initializer == "he_uniform"


def test_scale_dropout_is_the_papers():
    dropout = {name: e.network.scale_dropout for name, e in EXPERIMENTS.items()}
    assert dropout["fashion_mnist_max"] == 0.2
    assert dropout["fashion_mnist_max_without_label_smoothing"] == 0.1
    assert dropout["cifar10_max_without_label_smoothing"] == 0.3
    assert dropout["stl10_single_scale"] == 0
    assert dropout["digits_without_scale_dropout"] == 0


def test_the_last_layer_begins_as_the_paper_says_or_as_one_channel_needs(within):
    for name in ("cifar10_max", "stl10_average_pretrained", "mnist"):
        begins = {
            budget: within(EXPERIMENTS[name], budget).network.head_initializer
            for budget in ("full", "small")
        }
        assert begins == {"full": "he_uniform", "small": "positive"}


@pytest.mark.parametrize(
    ("option", "value", "field", "expected"),
    [
        ("--receptive-field", "auto", "receptive_field", "auto"),
        ("--head-initializer", "he_uniform", "head_initializer", "he_uniform"),
        ("--head-initializer", "positive", "head_initializer", "positive"),
        ("--receptive-field", "3", "receptive_field", 3.0),
        ("--receptive-field", "whole", "receptive_field", None),
        ("--canvas", "28", "input_shape", [28, 28, 1]),
        ("--widths", "4 6 6", "widths", [4, 6, 6]),
    ],
)
def test_the_command_decides_about_the_network(
    option, value, field, expected, examples, tmp_path, monkeypatch
):
    import reproduce

    ran = []
    monkeypatch.setattr(
        reproduce, "run", lambda _, experiment, *__: ran.append(experiment)
    )
    command = ["reproduce.py", "mnist", "--budget", "small", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*command, option, *value.split()])
    monkeypatch.setattr(sys.modules["sources"].Source, "collect", lambda *_: "")
    reproduce.main()
    found = getattr(ran[0].network, field)
    assert (list(found) if isinstance(found, tuple) else found) == expected
    recorded = json.loads((tmp_path / "settings.json").read_text(encoding="utf-8"))
    assert recorded["network"][field] == expected


def test_pretrained_networks_are_trained_and_tested_as_the_paper_says():
    for dataset in RESCALED:
        for pooling in POOLINGS:
            pretrained = EXPERIMENTS[f"{dataset}_{pooling}_pretrained"]
            (reference,) = EXPERIMENTS[f"{dataset}_{pooling}"].stages
            smoothing = {s.recipe.label_smoothing for s in pretrained.stages}
            assert smoothing == {reference.recipe.label_smoothing}
            expected = 7 if dataset == "stl10" else 6
            sigma0 = pretrained.test_sigma0 or pretrained.stages[-1].sigma0
            assert len(sigma0) == expected
    more = EXPERIMENTS["stl10_max_pretrained"]
    assert more.test_sigma0 == pytest.approx((*more.stages[-1].sigma0, 2 * 2**0.25))


def test_published_numbers_are_where_the_paper_states_them():
    stated = {n: e.published for n, e in EXPERIMENTS.items() if e.published}
    of_all = [f"{d}_{p}" for d in ("fashion_mnist", "cifar10") for p in POOLINGS]
    assert all(stated[name].endswith("(of all three)") for name in of_all)
    single = ["stl10_single_scale", "stl10_single_scale_without_label_smoothing"]
    assert {*of_all, *single, "stl10_average"} == set(stated)


def test_small_networks_are_smaller(within):
    of_the_paper = [e for e in EXPERIMENTS.values() if e.dataset != "digits"]
    for full in of_the_paper:
        small = within(full, "small")
        assert max(small.network.widths) < max(full.network.widths)
        assert len(small.stages) == len(full.stages)
        for reduced, stage in zip(small.stages, full.stages, strict=True):
            assert reduced.recipe.epochs < stage.recipe.epochs
            assert reduced.sigma0 == stage.sigma0


def kinds(experiment: Experiment) -> set[str]:
    """All in which experiments of the budget `smoke` differ, each with its value."""
    recipe = experiment.stages[-1].recipe
    features = {
        **dataclasses.asdict(experiment.network),
        "stages": [stage.sigma0 for stage in experiment.stages],
        "label_smoothing": recipe.label_smoothing,
        "augmentation": recipe.augmentation,
        "test_sigma0": experiment.test_sigma0,
        "factors": experiment.factors,
        "plain": experiment.plain,
        "variant": experiment.variant,
    }
    return {f"{name}={value!r}" for name, value in features.items()}


def of_every_kind() -> list[str]:
    """A few experiments that have together whatever any of them has."""
    found = {n: kinds(budgets.within(e, "smoke")) for n, e in EXPERIMENTS.items()}
    missing, chosen = set().union(*found.values()), []
    while missing:
        chosen.append(max(found, key=lambda name: len(found[name] & missing)))
        missing -= found[chosen[-1]]
    return chosen


def test_those_that_run_are_few_and_of_every_kind():
    assert len(of_every_kind()) < 20
    networks = {
        budgets.within(EXPERIMENTS[n], "smoke").network for n in of_every_kind()
    }
    assert {network.scale_pooling for network in networks} == set(POOLINGS)
    assert {network.residual for network in networks} == {True, False}


@pytest.mark.parametrize(
    ("scales", "taken"),
    [
        ([(1.0,), (1.0,), (0.7, 1.4)], "ab"),
        ([(0.7, 1.4), (0.7, 1.4)], "a"),
        ([None], "a"),
    ],
)
def test_stages_of_one_channel_are_taken_over(runner, tmp_path, scales, taken):
    recipe = Recipe(1, 2)
    stages = [Stage(n, recipe, s) for n, s in zip("abc", scales, strict=False)]
    other, out = tmp_path / "other", tmp_path / "out"
    for stage in stages:
        (other / stage.name).mkdir(parents=True)
        (other / stage.name / "weights").write_text("of the other run")
    (out / "a").mkdir(parents=True)
    runner.take_over(stages, other, out)
    assert "".join(sorted(folder.name for folder in out.iterdir())) == taken
    assert not list((out / "a").iterdir())  # what is there is not replaced


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_experiment_has_a_network(name, runner):
    experiment = budgets.within(EXPERIMENTS[name], "smoke")
    for stage in experiment.stages:
        model = runner.network(experiment, stage.sigma0, seed=0)
        assert model.output_shape == (None, 10)


@pytest.fixture
def eagerly():
    """Without tracing, which takes a hundred times as long as these few steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
@pytest.mark.filterwarnings("ignore:Even though the .*run_functions_eagerly")
@pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match")
@pytest.mark.parametrize("name", of_every_kind())
def test_experiments_of_every_kind_run(name, within, runner, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "VERBOSE", 0)
    monkeypatch.setattr(runner, "write_insight", lambda *_: None)  # test_insight.py
    experiment = within(EXPERIMENTS[name], "smoke")
    runner.run(name, experiment, runner.Options(tmp_path))
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    for accuracies in results["accuracies"].values():
        assert np.all((np.array(accuracies) >= 0) & (np.array(accuracies) <= 1))
    assert len(results["accuracies"]) == len(experiment.stages)
    assert (tmp_path / "scale_generalization.png").stat().st_size > 1000
    if not experiment.plain:
        np.testing.assert_allclose(np.sum(results["scale_selection"], axis=1), 1)
        assert len(results["sigma0"]) == len(
            experiment.test_sigma0 or experiment.stages[-1].sigma0
        )
    keras.backend.clear_session()


def test_a_full_disk_is_an_error_without_a_traceback(examples, tmp_path, monkeypatch):
    import reproduce

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reproduce, "run", full)
    command = ["reproduce.py", "mnist", "--budget", "smoke", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match=r"error: .*No space left on device"):
        reproduce.main()


@pytest.mark.parametrize("name", ["mnist", "cifar10_max_pretrained", "stl10_max"])
def test_the_budget_between_is_the_small_network_on_all_images(within, name):
    small, medium = (within(EXPERIMENTS[name], b) for b in ("small", "medium"))
    assert medium.network == small.network
    assert small.test_limit is not None and medium.test_limit is None
    assert medium.stages[0].limit is None


def test_the_large_budget_is_a_larger_network_on_cifar10(within):
    name = "cifar10_max_pretrained"
    medium, large = (within(EXPERIMENTS[name], b) for b in ("medium", "large"))
    assert max(large.network.widths) > 2 * max(medium.network.widths)
    first, restart, second = large.stages
    assert first.recipe.epochs > medium.stages[0].recipe.epochs
    assert restart.sigma0 == first.sigma0 and second.sigma0 == SIX_SCALES
    paddings = [stage.recipe.augmentation.padding for stage in large.stages]
    assert paddings == [2, 4, 2]
    rates = [stage.recipe.learning_rate for stage in large.stages]
    assert rates == [0.01, 0.005, 0.005]
    assert restart.recipe.warmup_epochs == 0
    assert 0 < large.network.scale_dropout < medium.network.scale_dropout
    assert second.recipe.epochs > medium.stages[1].recipe.epochs
    # A plain network beside it has as many epochs as one scale channel.
    plain = within(EXPERIMENTS["cifar10_plain"], "large").stages
    assert [stage.recipe.epochs for stage in plain] == [12, 8]
    assert plain[1].recipe == restart.recipe
    assert medium.stages[0].recipe.augmentation.padding == 0
    assert within(EXPERIMENTS["mnist"], "large") == within(
        EXPERIMENTS["mnist"], "medium"
    )
