"""What a search found: a table of the best trials, and pictures of all of them."""

from collections.abc import Sequence
from typing import Any

import keras_tuner
from common import aligned
from matplotlib.figure import Figure

SHOWN = 10


def trained(tuner: keras_tuner.Tuner) -> list[Any]:
    """The trials with a trained network, the best first."""
    trials = [trial for trial in ended(tuner) if trial.status == "COMPLETED"]
    trials = [trial for trial in trials if not metric(trial, "over_budget")]
    return sorted(trials, key=lambda trial: trial.score, reverse=True)


def ended(tuner: keras_tuner.Tuner) -> list[Any]:
    return [tuner.oracle.trials[name] for name in tuner.oracle.end_order]


def metric(trial: Any, name: str) -> float:
    return trial.metrics.get_last_value(name)


def counts(tuner: keras_tuner.Tuner) -> str:
    """How many trials there were, and of which kind."""
    every, best = ended(tuner), len(trained(tuner))
    completed = sum(trial.status == "COMPLETED" for trial in every)
    return (
        f"{len(every)} trials: {best} trained, {completed - best} not trained because "
        f"they were over the budget, {len(every) - completed} failed."
    )


def report(tuner: keras_tuner.Tuner) -> str:
    """Markdown: a table of the best trials, of which there must be one."""
    rows = _rows(trained(tuner)[:SHOWN], tuner.oracle.objective.name)
    return "\n\n".join([counts(tuner), aligned(rows)])


def _rows(trials: Sequence[Any], objective: str) -> list[list[str]]:
    columns = [_columns(trial, objective) for trial in trials]
    names = dict.fromkeys(name for found in columns for name in found)
    return [
        list(names),
        *([found.get(name, "–") for name in names] for found in columns),
    ]


def _columns(trial: Any, objective: str) -> dict[str, str]:
    values = dict(trial.hyperparameters.values)
    blocks = (f"width_{block + 1}" for block in range(values["blocks"]))
    widths = [values[name] for name in ("stem_width", *blocks)]
    found = {
        "trial": trial.trial_id,
        objective: f"{trial.score:.4f}",
        "parameters": f"{metric(trial, 'parameters'):,.0f}",
        "multiply-adds": f"{metric(trial, 'multiply_adds') / 1e6:,.1f}M",
        "widths": ", ".join(map(str, widths)),
    }
    for name, value in values.items():
        if "width" not in name and "/" not in name and name != "blocks":
            number = isinstance(value, float)
            found[name.replace("_", " ")] = f"{value:.4g}" if number else str(value)
    return found


def plot_trials(tuner: keras_tuner.Tuner) -> Figure:
    """The objective against the ratio, the pooling and the compute of each trial."""
    trials = trained(tuner)
    scores = [trial.score for trial in trials]
    figure = Figure(figsize=(11, 3.6), dpi=150, layout="constrained")
    ratio, pooling, compute = figure.subplots(1, 3, sharey=True)
    for axes, name in ((ratio, "ratio"), (pooling, "scale_pooling")):
        axes.scatter(
            [t.hyperparameters.values[name] for t in trials], scores, alpha=0.7
        )
    millions = [metric(trial, "multiply_adds") / 1e6 for trial in trials]
    compute.scatter(millions, scores, alpha=0.7)
    ratio.set_xlabel("ratio r")
    pooling.set_xlabel("pooling over scales")
    compute.set_xlabel("million multiply-adds per image (estimate)")
    ratio.set_ylabel(tuner.oracle.objective.name)
    for axes in (ratio, pooling, compute):
        axes.grid(alpha=0.3)
    return figure
