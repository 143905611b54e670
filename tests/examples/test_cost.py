"""What a training costs is said before it runs."""

import dataclasses
import json
import re
from unittest import mock

import pytest

from tests._commands import ROOT, modules_of
from tests._pages import page

with modules_of(ROOT / "examples" / "paper"):  # so that names can be parameters
    import cost
    from budgets import with_network, with_recipes, within
    from experiments import EXPERIMENTS

COUNTS = json.loads((ROOT / "results/gpu/paper.json").read_text("utf-8"))["counts"]
ROW = {"images": 45, "ms": 200.0, "memory GB": 30.0}


@pytest.fixture
def counted(monkeypatch):
    """A record of round numbers, and a machine of a million operations per second."""
    rows = {"cifar10, 6 scales, full": ROW}
    rows["cifar10, 1 scale, full"] = {"images": 32, "ms": 10.0, "memory GB": 8.0}
    monkeypatch.setattr(cost, "_record", lambda: rows)
    monkeypatch.setattr(cost, "_rate", lambda is_on_grids: 1e6)
    monkeypatch.setattr(cost, "operations", lambda experiment, stage: 500.0)


def full(name):
    return within(EXPERIMENTS[name], "full")


@pytest.mark.usefixtures("counted")
def test_hours_and_memory_by_hand():
    # 90 epochs of 50000 images, 1112 steps each; 500 operations an image.
    there = 90 * 1112 * 0.2 / 3600
    expected = f"38 min here, {there:.1f} h on an H100, 30 GB (16 do not)"
    assert cost.cost(full("cifar10_max")) == expected
    # Two stages: 40 epochs of one scale channel in batches of 128, then 50 of six.
    there = (40 * 391 * 4 * 0.01 + 50 * 1112 * 0.2) / 3600
    expected = f"38 min here, {there:.1f} h on an H100, 32 GB (16 do not)"
    assert cost.cost(full("cifar10_max_pretrained")) == expected


@pytest.mark.usefixtures("counted")
def test_smaller_batches_need_less_memory_for_about_as_long():
    small = with_recipes(full("cifar10_max"), [{"batch_size": 22}])
    assert cost.cost(small) == "38 min here, 5.6 h on an H100, 15 GB (16 do)"


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    "experiment",
    [
        with_network(full("cifar10_max"), widths=(8, 8)),
        with_network(within(EXPERIMENTS["cifar10_max"], "fast"), receptive_field=3.0),
        within(EXPERIMENTS["cifar10_max"], "large"),
        full("cifar10_plain"),
        full("stl10_max"),  # not in this record
    ],
)
def test_what_was_not_counted_has_hours_here_alone(experiment):
    assert re.fullmatch(r"\d+ min here", cost.cost(experiment))


@pytest.mark.parametrize("name", [name for name in COUNTS if "cifar10" in name])
def test_operations_are_about_those_of_the_compiled_program(name):
    """It convolves with nine points where five derivatives are counted, and smooths."""
    dataset, scales, budget = name.split(", ")
    experiment = EXPERIMENTS[f"{dataset}_{'max' if scales[0] == '6' else 'single'}"]
    experiment = within(experiment, budget)
    (stage,) = experiment.stages
    of_program = COUNTS[name]["T operations"] * 1e12 / COUNTS[name]["images"]
    assert 0.4 < cost.operations(experiment, stage) / of_program < 5 / 9


def test_rows_of_the_record_are_of_experiments():
    """Each with the batch of its stage, so that nothing is scaled in the paper's."""
    found = {}
    for budget in ("full", "fast"):
        for experiment in EXPERIMENTS.values():
            if not experiment.plain:
                for stage in within(experiment, budget).stages:
                    scales = f"{len(stage.sigma0)} scale{'s'[: len(stage.sigma0) > 1]}"
                    name = f"{experiment.dataset}, {scales}, {budget}"
                    found.setdefault(name, set()).add(stage.recipe.batch_size)
    assert COUNTS and all(row["images"] in found[name] for name, row in COUNTS.items())
    for name, row in COUNTS.items():
        # A bound is no less than memory traffic at 3 TB/s takes.
        assert row["ms"] > row["GB"] / 3.1 and row["memory GB"] > 0.05, name


def test_a_step_is_timed_when_it_is_warm(monkeypatch):
    tiny = dataclasses.replace(cost.TIMED, input_shape=(8, 8, 3), widths=(4, 4))
    monkeypatch.setattr(cost, "TIMED", tiny)
    # Two slow steps, one of 3 and one of 2 seconds.
    clock = mock.Mock(side_effect=[0.0, 50.0, 60.0, 80.0, 100.0, 103.0, 110.0, 112.0])
    monkeypatch.setattr(cost.time, "perf_counter", clock)
    # Five derivatives: 3 → 4, then 4 → 4 twice, 4 → 10; skips are the identity.
    weights = 5 * (3 * 4 + 4 * 4 + 4 * 4 + 4 * 10)
    rate = cost._rate.__wrapped__(is_on_grids=False)
    assert rate == pytest.approx(cost.TIMED_BATCH * 6 * weights * 64 / 2)


def test_a_run_begins_with_its_cost(paper, main, monkeypatch):
    module = paper("reproduce")
    module.run = mock.Mock()
    monkeypatch.setattr(module.Source, "look_up", lambda *_: "")
    monkeypatch.setattr(module, "cost", lambda experiment: f"{experiment.dataset}: 2 h")
    printed = main(module, "mnist", "--batch-size", 5)
    assert "About mnist: 2 h. Hours of training: here by counted" in printed
    assert "counted without a GPU" in printed and "it departs from the paper" in printed


def test_hours_and_memory_on_the_page_of_gpus(monkeypatch):
    monkeypatch.setattr(cost, "_rate", lambda is_on_grids: 1e12)
    (table,) = re.findall(
        r"^\| training .*\n\|-.*\n((?:\|.*\n)+)", page("docs/devices"), re.M
    )
    for line in table.splitlines():
        _, name, *stated = (cell.strip(" `") for cell in line.strip("|").split("|"))
        for budget, cell in zip(("full", "fast"), stated, strict=True):
            hours, memory = cell.split(", ")
            words = f" here, {hours} on an H100, {memory} ("
            assert words in cost.cost(within(EXPERIMENTS[name], budget)), (name, budget)
