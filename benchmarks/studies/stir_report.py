"""The table and the pictures of `stir.py`, with the published accuracies."""

import numpy as np
from common import spread
from matplotlib.figure import Figure

from keras_gdrn.data import STIR_SCENARIOS, STIR_SIZES, stir_published
from keras_gdrn.visualization import markdown_table


def grouped(results: list[dict], *names: str) -> list[tuple[tuple, list[dict]]]:
    """The results in groups with the same entries of these names, in order."""
    groups: dict[tuple, list[dict]] = {}
    for result in sorted(results, key=lambda result: result["seed"]):
        groups.setdefault(tuple(result[name] for name in names), []).append(result)
    return sorted(groups.items())


def picture(results: list[dict]) -> Figure:
    """For each scenario the accuracy of each run, over the published ones in gray."""
    groups = grouped(results, "data", "scenario")
    figure = Figure((1 + 3.2 * len(groups), 3.4), dpi=100, layout="constrained")
    plots = np.ravel(figure.subplots(1, len(groups), sharey=True))
    for plot, ((data, scenario), runs) in zip(plots, groups, strict=True):
        trained = STIR_SCENARIOS[scenario]
        plot.axvspan(trained[0], trained[-1], color="0.92", lw=0)
        others = np.transpose(list(stir_published(data, scenario).values()))
        plot.plot(STIR_SIZES, others, color="0.6", lw=0.8)
        ours = 100 * np.transpose([result["accuracies"] for result in runs])
        plot.plot(STIR_SIZES, ours, "C3", lw=1.6)
        plot.set_title(f"{data}, trained at {trained[0]} to {trained[-1]}", fontsize=10)
        plot.set_xlabel("size [pixels]")
        plot.grid(alpha=0.3)
        gray, red = plot.lines[0], plot.lines[-1]
    plots[0].set_ylabel("accuracy [%]")
    labels = [f"{others.shape[1]} published networks", "six scale channels"]
    figure.legend([gray, red], labels, loc="outside lower center", ncols=2)
    return figure


def table(results: list[dict]) -> str:
    """A row for each scenario and network: means over seeds; the best published."""
    header = "trained at|network|seeds|mean of 48 sizes|worst size|published: best mean"
    rows = [f"{header}|published: best worst size|weights|minutes".split("|")]
    groups = grouped(results, "data", "scenario", "network")
    for (data, scenario, network), runs in groups:
        accuracies = 100 * np.array([result["accuracies"] for result in runs])
        others = np.stack(list(stir_published(data, scenario).values()))
        sizes = STIR_SCENARIOS[scenario]
        row = [f"{data}, {sizes[0]} to {sizes[-1]}", network]
        row += [" ".join(str(result["seed"]) for result in runs)]
        row += [spread(accuracies.mean(axis=1)), spread(accuracies.min(axis=1))]
        row += [f"{others.mean(1).max():.1f}", f"{others.min(1).max():.1f}"]
        row += [str(runs[0]["parameters"])]
        row += [spread([result["minutes of training"] for result in runs])]
        rows.append(row)
    return markdown_table(rows)
