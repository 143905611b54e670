"""What a search found: a table of the best trials, and a figure of all of them."""

import keras_tuner
from keras_tuner.engine.trial import Trial
from matplotlib.figure import Figure

from keras_gdrn.visualization import markdown_table

_SHOWN = 10


def trained_trials(tuner: keras_tuner.Tuner) -> list[Trial]:
    """The trials that have not failed, the best first."""
    best_first = tuner.oracle.get_best_trials(len(tuner.oracle.trials))
    return [trial for trial in best_first if trial.status == "COMPLETED"]


def report(tuner: keras_tuner.Tuner) -> str:
    """Markdown: how many trials there were, and a table of the ten best."""
    ended = [tuner.oracle.trials[name] for name in tuner.oracle.end_order]
    trained, name = trained_trials(tuner), tuner.oracle.objective.name
    failed = len(ended) - len(trained)
    counts = f"{len(ended)} trials: {len(trained)} trained, {failed} failed."
    columns = [_columns(trial, name) for trial in trained[:_SHOWN]]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[column.get(name, "–") for name in names] for column in columns]
    return f"{counts}\n\n{markdown_table([list(names), *rows])}" if rows else counts


def plot_trials(tuner: keras_tuner.Tuner) -> Figure:
    """The objective against ratio, pooling and size, a dot for each network."""
    trials = trained_trials(tuner)
    against = {
        "ratio r": [trial.hyperparameters["ratio"] for trial in trials],
        "pooling over scales": [t.hyperparameters["scale_pooling"] for t in trials],
        "parameters": [_parameters(trial) for trial in trials],
    }
    figure = Figure((11, 3.6), dpi=150, layout="constrained")
    plots = figure.subplots(1, len(against), sharey=True)
    for axes, (label, positions) in zip(plots, against.items(), strict=True):
        axes.scatter(positions, [trial.score for trial in trials], alpha=0.7)
        axes.set_xlabel(label)
        axes.grid(alpha=0.3)
    plots[0].set_ylabel(tuner.oracle.objective.name)
    return figure


def _columns(trial: Trial, objective: str) -> dict[str, str]:
    values = trial.hyperparameters.values
    blocks = (f"width_{block + 1}" for block in range(values["blocks"]))
    columns = {
        "trial": trial.trial_id,
        objective: f"{trial.score:.4f}",
        "parameters": f"{_parameters(trial):,.0f}",
        "widths": ", ".join(str(values[name]) for name in ("stem_width", *blocks)),
    }
    for name, value in values.items():
        if "width" not in name and "/" not in name and name != "blocks":
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            columns[name.replace("_", " ")] = text
    return columns


def _parameters(trial: Trial) -> float:
    return trial.metrics.get_last_value("parameters")
