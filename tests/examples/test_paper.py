"""The paper's experiments, budgets and figures: that they are the paper's."""

import dataclasses
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from keras_gdrn.models import ARCHITECTURES, SIX_SCALES, with_input_shape
from keras_gdrn.training import RECIPES, Augmentation
from tests._commands import ROOT, modules_of
from tests._pages import page

with modules_of(ROOT / "examples" / "paper"):  # so that names can be parameters
    from budgets import with_network, within
    from experiments import EXPERIMENTS, POOLINGS, RESCALED
    from figures import FIGURES, listing
    from reproduce import start_for
    from run import network, parts, train

PRETRAINED, CONTROL = "cifar10_max_pretrained", "cifar10_plain"


def test_each_figure_of_the_paper_has_its_runs_and_is_in_the_docs():
    found = {name: len(figure.runs) for name, figure in FIGURES.items()}
    parts = {name for name in found if name.endswith(RESCALED)}
    counts = dict.fromkeys(("separable", "label_smoothing", "pretrained", "dense"), 18)
    counts |= {"poolings": 9, "zero_order": 6, "single": 3}
    for what in ("cifar10", "stl10", "separable"):
        counts[f"{what}_scale_selection"] = 3
    ablations = {f"{d}_label_smoothing_scale_selection": 6 for d in RESCALED}
    assert {name: found[name] for name in set(found) - parts} == counts | ablations
    text = page("docs/departures")
    assert set(counts) <= set(re.findall(r"`(?:reproduce.py |--figure )*(\w+)`", text))
    wanted = {run for figure in FIGURES.values() for run in figure.runs}
    assert wanted <= set(EXPERIMENTS)
    # On CIFAR-10 the paper shows the scale selection without label smoothing.
    for run in FIGURES["cifar10_scale_selection"].runs:
        assert EXPERIMENTS[run].stages[0].recipe.label_smoothing == 0


def test_experiments_that_results_and_pages_name_exist():
    results = ROOT / "results"
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = " ".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"reproduce\.py\s([a-z]\w+)", text))
    records = results.rglob("results.json")
    named |= {json.loads(file.read_text(encoding="utf-8"))["name"] for file in records}
    assert len(named) > 20 and named <= set(EXPERIMENTS)


def test_networks_and_recipes_are_the_papers():
    for name, of in {"cifar10_max": "cifar10", "stl10_average": "stl10"}.items():
        full, preset = within(EXPERIMENTS[name], "full"), f"rescaled_{of}"
        network = dataclasses.replace(ARCHITECTURES[preset], density=None)
        (stage,) = full.stages
        assert (full.network, stage.sigma0) == (network, SIX_SCALES)
        assert stage.recipe == RECIPES[preset]
    assert not EXPERIMENTS["stl10_without_zero_order"].network.zero_order
    assert not EXPERIMENTS["stl10_without_residual"].network.residual
    assert len(EXPERIMENTS["cifar10_max_dense"].test_sigma0) == 12
    assert EXPERIMENTS["cifar10_single"].stages[0].recipe.batch_size == 128
    dropout = {name: e.network.scale_dropout for name, e in EXPERIMENTS.items()}
    assert dropout["fashion_mnist_max"] == 0.2
    assert dropout["fashion_mnist_max_without_label_smoothing"] == 0.1
    assert dropout["cifar10_max_without_label_smoothing"] == 0.3
    assert dropout["stl10_single_scale"] == dropout["digits_without_scale_dropout"] == 0


@pytest.mark.parametrize("dataset", RESCALED)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_pretrained_networks_are_trained_and_tested_as_the_paper_says(dataset, pooling):
    pretrained = EXPERIMENTS[f"{dataset}_{pooling}_pretrained"]
    (reference,) = EXPERIMENTS[f"{dataset}_{pooling}"].stages
    smoothing = {s.recipe.label_smoothing for s in pretrained.stages}
    assert smoothing == {reference.recipe.label_smoothing}
    assert [len(stage.sigma0) for stage in pretrained.stages] == [1, 6]
    more = (*SIX_SCALES, 2 * 2**0.25) if dataset == "stl10" else SIX_SCALES
    sigma0 = pretrained.test_sigma0 or pretrained.stages[-1].sigma0
    assert sigma0 == pytest.approx(more)


def test_full_is_the_papers_setting_and_small_is_less_of_it():
    for experiment in EXPERIMENTS.values():
        full, fast, small = (within(experiment, b) for b in ("full", "fast", "small"))
        assert full.network.density is None
        if experiment.network.density:
            assert with_network(full, density=1.0) == fast == experiment
        if full.dataset in (*RESCALED, "stl10_original"):
            assert full.network.boundary == "zero"
            one = len(full.stages[0].sigma0 or full.network.sigma0) == 1
            is_risky = one and full.network.spatial_selection == "center"
            begins = "positive" if is_risky else "he_uniform"
            assert full.network.head_initializer == begins
        if full.dataset != "digits":
            assert small.network.head_initializer == "positive"
            assert max(small.network.widths) < max(full.network.widths)
            for reduced, stage in zip(small.stages, full.stages, strict=True):
                assert reduced.recipe.epochs < stage.recipe.epochs
                assert reduced.sigma0 == stage.sigma0


@pytest.mark.parametrize("name", ["mnist", PRETRAINED, "stl10_max"])
def test_medium_trains_the_small_network_on_all_images(name):
    small, medium = (within(EXPERIMENTS[name], b) for b in ("small", "medium"))
    assert medium.network == small.network
    assert small.test_limit is not None and medium.test_limit is None
    assert medium.stages[0].limit is None
    assert (within(EXPERIMENTS[name], "large") == medium) == (name == "stl10_max")


def test_large_bends_and_blurs_the_digits_of_the_network_that_comes_trained():
    medium, large = (within(EXPERIMENTS["mnist"], b) for b in ("medium", "large"))
    assert large.network.widths == ARCHITECTURES["mnist"].widths
    for stage, before in zip(large.stages, medium.stages, strict=True):
        changed = Augmentation(elastic=2.0, blur=1.0)
        assert before.recipe.augmentation == Augmentation()
        recipe = dataclasses.replace(before.recipe, augmentation=changed)
        assert stage == dataclasses.replace(before, recipe=recipe)


def test_large_goes_on_from_one_scale_channel():
    large = within(EXPERIMENTS[PRETRAINED], "large")
    stages = large.stages
    assert [len(stage.sigma0) for stage in stages] == [1, 6]
    changes = [stage.recipe.augmentation for stage in stages]
    assert [change.padding for change in changes] == [4, 4]
    jitter = EXPERIMENTS[PRETRAINED].stages[0].recipe.augmentation.jitter
    assert [change.jitter for change in changes] == [jitter] * 2
    assert [stage.recipe.batch_size for stage in stages] == [64, 64]
    # Its images are looked up before any training.
    first, second, *tests = ((split, canvas) for split, _, canvas in parts(large))
    assert (first, second) == tuple(("train+validation", (n, n)) for n in (48, 64))
    assert set(tests) == {("test", 64)}
    (jointly,) = within(EXPERIMENTS["cifar10_max"], "large").stages
    assert jointly.input_shape == stages[1].input_shape == (64, 64, 3)
    # A plain network to compare has as many epochs as one scale channel.
    (plain,) = within(EXPERIMENTS[CONTROL], "large").stages
    assert plain.recipe.epochs == stages[0].recipe.epochs
    assert within(EXPERIMENTS[CONTROL], "large").test_canvas == 64


def test_the_coarsest_channel_sees_nothing_beyond_its_canvas():
    """And something beyond a smaller one."""
    large = within(EXPERIMENTS[PRETRAINED], "large")
    model = network(large, SIX_SCALES[-1:], 0)
    seen = large.test_canvas
    images = np.random.default_rng(0).random((1, seen + 32, seen + 32, 3), "float32")

    def scores(side):
        edge = (seen + 32 - side) // 2
        cut = images[:, edge : edge + side, edge : edge + side]
        return with_input_shape(model, cut.shape[1:]).predict(cut, verbose=0)

    found = scores(seen + 32)
    differences = [np.abs(scores(side) / found - 1).max() for side in (seen, 48)]
    assert differences[0] < 3e-4 < 1e-3 < differences[1]


def test_each_stage_is_given_images_of_its_own_size(monkeypatch, tmp_path):
    given = []
    source = SimpleNamespace(data=lambda *_, canvas, limit: given.append(canvas))
    options = SimpleNamespace(
        out=tmp_path,
        seed=0,
        source=source,
        start_from=None,
        devices=1,
        checkpoint_minutes=10,
    )

    def stages_of(model, stages, images, **_):
        for stage in stages:
            images(stage)

    monkeypatch.setitem(train.__globals__, "train_in_stages", stages_of)
    train(within(EXPERIMENTS[PRETRAINED], "large"), options)
    assert given == [(48, 48), (64, 64)]


@pytest.mark.parametrize(
    ("run", "others", "expected"),
    [
        ("cifar10_max_dense", ["cifar10_average", "cifar10_max"], "cifar10_max"),
        ("cifar10_max_dense", ["cifar10_average", "fashion_mnist_max"], None),
        # One scale channel is the same whatever pools it.
        ("mnist", ["cifar10_max", "mnist"], None),
        ("cifar10_average_pretrained", [PRETRAINED], PRETRAINED),
        # Another label smoothing.
        ("stl10_average_pretrained", ["stl10_max_pretrained"], None),
        ("cifar10_max_separable", ["cifar10_max"], None),
    ],
)
def test_what_runs_have_in_common_is_trained_once(run, others, expected):
    assert start_for(run, others) == expected


def test_the_list_is_by_section_and_says_what_is_trained(monkeypatch):
    monkeypatch.setitem(listing.__globals__, "cost", lambda of: f"{len(of.stages)} h")
    text = listing("full")
    titles = ("Sec. 7.1, zero-order term", "A.1, one scale", "beyond the paper: MNIST")
    places = [text.index(f"\n\n{title}") for title in titles]
    assert places == sorted(places)
    assert re.search(r"^  cifar10_max +cifar10, 90 × 50000 in 6: 1 h$", text, re.M)
    assert "counted without a GPU" in text
    named = re.findall(r"^  (\S+)", text, re.M)
    assert set(EXPERIMENTS) <= set(named) and named.count("--figure") == len(FIGURES)
