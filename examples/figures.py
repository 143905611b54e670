"""The paper's figures that compare networks, as data: which runs, drawn how.

`reproduce.py --figure NAME` runs or resumes what a figure needs, and draws it.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import replace

from experiments import EXPERIMENTS, POOLINGS, RESCALED, Experiment

CURVES, HISTOGRAM, TABLE = "curves", "histogram", "table"


@dataclasses.dataclass(frozen=True)
class Panel:
    """A part of a figure.

    Args:
        title: Title above the panel; of curves, the data set.
        runs: Keys of `EXPERIMENTS`; a histogram or a picture is of one of them.
        kind: `CURVES`, `HISTOGRAM`, `TABLE`, or the name of a picture in the folder of
            the run.
    """

    title: str
    runs: tuple[str, ...]
    kind: str = CURVES


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure or a table of the paper.

    Args:
        where: Where it is in the paper.
        panels: Panels, in rows of three.
    """

    where: str
    panels: tuple[Panel, ...] = ()

    @property
    def runs(self) -> tuple[str, ...]:
        """The experiments that it needs, each once, before those that start from it."""
        return tuple(dict.fromkeys(run for panel in self.panels for run in panel.runs))


def _with_poolings(dataset: str, *suffixes: str) -> tuple[str, ...]:
    return tuple(f"{dataset}_{p}{suffix}" for suffix in suffixes for p in POOLINGS)


def _of_datasets(where: str, *suffixes: str) -> Figure:
    """A panel of curves for each data set: three poolings, with each suffix."""
    panels = (Panel(d, _with_poolings(d, *suffixes)) for d in RESCALED)
    return Figure(where, tuple(panels))


def _histograms(where: str, runs: Iterable[str]) -> Figure:
    return Figure(where, tuple(Panel(run, (run,), HISTOGRAM) for run in runs))


def _label_smoothing(dataset: str) -> tuple[str, ...]:
    """All three poolings with label smoothing, then without."""
    suffixes = ("", "_with_label_smoothing", "_without_label_smoothing")
    runs = (f"{dataset}_{p}{suffix}" for p in POOLINGS for suffix in suffixes)
    known = [run for run in runs if run in EXPERIMENTS]
    return tuple(sorted(known, key=lambda run: not _smoothing(run)))


def _smoothing(run: str) -> float:
    return EXPERIMENTS[run].stages[0].recipe.label_smoothing


def _zero_order(dataset: str) -> tuple[str, str]:
    """Without the zero-order term, and with it."""
    if dataset == "stl10":
        return "stl10_without_zero_order", "stl10_average"
    return f"{dataset}_max", f"{dataset}_zero_order"


def _figures() -> dict[str, Figure]:
    with_zero_order = [_zero_order(dataset)[1] for dataset in RESCALED]
    without_smoothing = [r for r in _label_smoothing("cifar10") if not _smoothing(r)]
    figures = {
        "basis_kernels": Figure("Sec. 3.1, kernels up to order 3"),
        "stl10_single_scale": Figure(
            "Sec. 6.1, table of the regular STL-10",
            (
                Panel(
                    "regular STL-10",
                    (
                        "stl10_single_scale_without_label_smoothing",
                        "stl10_single_scale",
                    ),
                    TABLE,
                ),
            ),
        ),
        "poolings": _of_datasets("Sec. 6.2, scale generalization", ""),
        "cifar10_scale_selection": _histograms(
            "Sec. 6.2, scale selection on CIFAR-10", without_smoothing
        ),
        "stl10_scale_selection": _histograms(
            "Sec. 6.2, scale selection on STL-10", _with_poolings("stl10", "")
        ),
        "zero_order": Figure(
            "Sec. 7.1, zero-order term",
            (
                *(Panel(d, _zero_order(d)) for d in RESCALED),
                *(Panel(run, (run,), HISTOGRAM) for run in with_zero_order),
            ),
        ),
        "activation_maps": Figure(
            "Sec. 8, activation maps",
            (Panel("stl10", ("stl10_average",), "activation_maps.png"),),
        ),
        "single": Figure(
            "A.1, one scale channel",
            tuple(Panel(dataset, (f"{dataset}_single",)) for dataset in RESCALED),
        ),
        "separable": _of_datasets("A.2, depthwise-separable", "", "_separable"),
        "separable_scale_selection": _histograms(
            "A.2, scale selection", [f"{d}_max_separable" for d in RESCALED]
        ),
        "label_smoothing": Figure(
            "A.3, label smoothing",
            tuple(Panel(d, _label_smoothing(d)) for d in RESCALED),
        ),
        "pretrained": _of_datasets("A.4, pre-training", "", "_pretrained"),
        "dense": _of_datasets("A.5, denser scale channels", "", "_dense"),
        "effective_filters": Figure(
            "A.6, effective filters",
            (Panel("stl10", ("stl10_single",), "effective_filters.png"),),
        ),
    }
    for dataset in RESCALED:
        figures[f"{dataset}_label_smoothing_scale_selection"] = _histograms(
            "A.3, scale selection", _label_smoothing(dataset)
        )
    return figures | _of_one_dataset(figures)


def _of_one_dataset(figures: dict[str, Figure]) -> dict[str, Figure]:
    """Of figures with three data sets, the part of each: `separable_cifar10`."""
    parts = {}
    for name, figure in figures.items():
        if len(figure.panels) < len(RESCALED):
            continue
        for dataset in RESCALED:
            own = tuple(p for p in figure.panels if p.runs[0].startswith(dataset))
            if 0 < len(own) < len(figure.panels):
                parts[f"{name}_{dataset}"] = replace(figure, panels=own)
    return parts


FIGURES = _figures()


def start_for(run: str, others: Iterable[str]) -> str | None:
    """Of other experiments, one whose first stage is the same, to take over.

    A single scale channel is the same whatever pools it.
    """
    wanted = EXPERIMENTS[run]
    same = (o for o in others if o != run and _same_start(EXPERIMENTS[o], wanted))
    return next(same, None)


def _same_start(one: Experiment, other: Experiment) -> bool:
    first = other.stages[0]
    if one.stages[0] != first:
        return False
    networks = [one.network, other.network]
    if len(first.sigma0) == 1:
        networks = [replace(n, scale_pooling="max", sigma0=()) for n in networks]
    what = [(e.dataset, e.plain, e.variant) for e in (one, other)]
    return networks[0] == networks[1] and what[0] == what[1]
