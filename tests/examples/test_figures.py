"""The paper's figures: what each runs, what runs share, and that all can be drawn."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import SIZE_FACTORS


@pytest.fixture
def figures(examples):
    import figures

    return figures


@pytest.fixture
def reproduce(examples, monkeypatch, tmp_path):
    import reproduce

    def run(*options):
        command = ["reproduce.py", *options, "--budget", "smoke"]
        monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path)])
        reproduce.main()

    run.module = reproduce
    return run


def test_every_comparison_of_the_paper_is_there(figures):
    expected = {
        "poolings": 9,
        "cifar10_scale_selection": 3,
        "stl10_scale_selection": 3,
        "zero_order": 6,
        "single": 3,
        "separable": 18,
        "separable_scale_selection": 3,
        "label_smoothing": 18,
        "fashion_mnist_label_smoothing_scale_selection": 6,
        "cifar10_label_smoothing_scale_selection": 6,
        "stl10_label_smoothing_scale_selection": 6,
        "pretrained": 18,
        "dense": 18,
        "stl10_single_scale": 2,
        "activation_maps": 1,
        "effective_filters": 1,
        "basis_kernels": 0,
    }
    found = {name: len(figures.FIGURES[name].runs) for name in expected}
    assert found == expected
    assert figures.FIGURES["separable_cifar10"].runs == (
        *(f"cifar10_{pooling}" for pooling in figures.POOLINGS),
        *(f"cifar10_{pooling}_separable" for pooling in figures.POOLINGS),
    )


def test_the_docs_name_each_figure(figures):
    page = Path(__file__).resolve().parents[2] / "docs" / "departures.md"
    named = set(
        re.findall(r"`(?:reproduce.py |--figure )*(\w+)`", page.read_text("utf-8"))
    )
    whole = {
        name
        for name in figures.FIGURES
        if not name.endswith(figures.RESCALED) and "_label_smoothing_" not in name
    }
    assert whole <= named


def test_networks_of_the_scale_selection_are_the_papers(figures):
    """On CIFAR-10 the paper shows those without label smoothing."""
    runs = figures.FIGURES["cifar10_scale_selection"].runs
    smoothing = [
        figures.EXPERIMENTS[run].stages[0].recipe.label_smoothing for run in runs
    ]
    assert smoothing == [0, 0, 0]


@pytest.mark.parametrize(
    ("run", "others", "expected"),
    [
        ("cifar10_max_dense", ["cifar10_average", "cifar10_max"], "cifar10_max"),
        ("cifar10_max_dense", ["cifar10_average", "fashion_mnist_max"], None),
        ("cifar10_average_pretrained", ["cifar10_max_pretrained"], 0),
        # Another label smoothing.
        ("stl10_average_pretrained", ["stl10_max_pretrained"], None),
        ("cifar10_max_separable", ["cifar10_max"], None),
        ("cifar10_max", ["cifar10_max"], None),
    ],
)
def test_what_runs_have_in_common_is_trained_once(run, others, expected, figures):
    expected = others[0] if expected == 0 else expected
    assert figures.start_for(run, others) == expected


def fake_run(name, experiment, how):
    """As if it had been run."""
    random = np.random.default_rng(len(name))
    sigma0 = experiment.test_sigma0 or experiment.stages[-1].sigma0
    shares = random.random((9, len(sigma0)))
    record = {
        "command": f"reproduce.py {name}",
        "seed": 0,
        "date": "2026-11-22",
        "parameters": 1000,
        "policy": "float32",
        "seconds": {"training": 60.0},
        "environment": {
            "cores": 2,
            "processor": "a processor",
            "gpus": [],
            "keras": "3",
            "backend": "tensorflow",
        },
        "factors": list(SIZE_FACTORS),
        "accuracies": {name: random.random(9).tolist()},
        "sigma0": list(sigma0),
        "scale_selection": (shares / shares.sum(axis=1, keepdims=True)).tolist(),
    }
    (how.out / "results.json").write_text(json.dumps(record), encoding="utf-8")
    for picture in ("activation_maps.png", "effective_filters.png"):
        (how.out / picture).write_bytes(b"a picture")


@pytest.mark.parametrize(
    "name",
    [
        *("basis_kernels", "stl10_single_scale", "dense", "zero_order"),
        *("stl10_label_smoothing_scale_selection", "activation_maps", "single_cifar10"),
    ],
)
def test_figures_are_drawn(name, reproduce, figures, tmp_path, monkeypatch, capsys):
    ran = []

    def run(experiment, *how):
        ran.append((experiment, how[-1].start_from))
        fake_run(experiment, *how)

    monkeypatch.setattr(reproduce.module, "run", run)
    reproduce("--figure", name)
    runs = figures.FIGURES[name].runs
    assert [experiment for experiment, _ in ran] == list(runs)
    if name == "dense":
        assert dict(ran)["cifar10_max_dense"] == tmp_path / "cifar10_max-smoke"
    written = sorted(p.name for p in tmp_path.iterdir() if p.is_file())
    wanted = {"basis_kernels": [".png"], "stl10_single_scale": [".md"]}
    suffixes = wanted.get(name, [".md", ".png"])
    assert written == [f"{name}-smoke{suffix}" for suffix in suffixes]
    if runs:
        table = (tmp_path / f"{name}-smoke.md").read_text(encoding="utf-8")
        assert all(f"| {run.replace('_', ' ')} " in table for run in runs)
        assert f"{runs[0]}: about" in capsys.readouterr().out  # before it begins
    ran.clear()
    reproduce("--figure", name)  # nothing is run again
    assert not ran


def test_time_of_a_figure_is_limited(reproduce, tmp_path, monkeypatch, capsys):
    ran = []

    def run(experiment, *how):
        ran.append(experiment)
        fake_run(experiment, *how)
        how[-1].max_minutes.took(1.0)

    monkeypatch.setattr(reproduce.module, "run", run)
    for number in (1, 2):
        reproduce("--figure", "zero_order_cifar10", "--max-minutes", "0")
        assert len(ran) == number
    assert "Out of time" in capsys.readouterr().out.split("cifar10_zero_order")[0]
    assert (tmp_path / "zero_order_cifar10-smoke.png").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Even though the .*run_functions_eagerly")
@pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match")
def test_a_figure_from_nothing(reproduce, figures, tmp_path):
    """A dense network starts from the standard one, and is not trained again."""
    panel = figures.Panel("cifar10", ("cifar10_max", "cifar10_max_dense"))
    figures.FIGURES["small"] = figures.Figure("a part of A.5", (panel,))
    tf.config.run_functions_eagerly(True)
    try:
        reproduce("--figure", "small")
    finally:
        tf.config.run_functions_eagerly(False)
        del figures.FIGURES["small"]
    assert (tmp_path / "small-smoke.png").stat().st_size > 10_000
    logs = [
        (tmp_path / f"{name}-smoke" / "training" / "log.csv").read_bytes()
        for name in panel.runs
    ]
    assert logs[0] == logs[1]


def test_list_is_by_section_and_tells_the_time(reproduce, capsys):
    reproduce("--list")
    listed = capsys.readouterr().out
    sections = [part.splitlines() for part in listed.split("\n\n")]
    titles = [lines[0] for lines in sections]
    assert titles.index("Sec. 6.2, scale generalization") < titles.index(
        "A.2, depthwise-separable"
    )
    (of_pooling,) = (x for x in sections if x[0] == "Sec. 6.2, scale generalization")
    assert any(line.split()[0] == "cifar10_max" for line in of_pooling)
    assert "  --figure poolings" in of_pooling
    assert listed.splitlines()[-1].endswith("--budget smoke.")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0.4 s"),
        (45, "45 s"),
        (200, "3.3 min"),
        (9000, "2.5 h"),
        (1e7, "116 days"),
    ],
)
def test_durations(seconds, text, examples):
    from estimate import duration

    assert duration(seconds) == text


def test_estimates_grow_with_the_work(examples, monkeypatch):
    import estimate
    from budgets import within
    from experiments import EXPERIMENTS

    monkeypatch.setattr(estimate, "speed", lambda: 1e10)
    of = {
        (name, budget): estimate.seconds(within(EXPERIMENTS[name], budget))
        for name in ("cifar10_max", "cifar10_single", "cifar10_plain")
        for budget in ("small", "full")
    }
    for name in ("cifar10_max", "cifar10_single", "cifar10_plain"):
        assert of[name, "full"] > 10 * of[name, "small"]
    assert of["cifar10_max", "full"] > 2 * of["cifar10_single", "full"]


def test_a_name_or_a_figure(reproduce):
    for options in ((), ("mnist", "--figure", "poolings")):
        with pytest.raises(SystemExit):
            reproduce(*options)
