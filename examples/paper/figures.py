"""The paper's figures that compare networks, as data: which runs, drawn how."""

import dataclasses
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from experiments import EXPERIMENTS, POOLINGS, RESCALED
from matplotlib.figure import Figure as Picture
from records import report

from keras_gdrn.evaluation import ScaleGeneralization, ScaleSelectionHistogram
from keras_gdrn.visualization import (
    plot_basis_kernels,
    plot_scale_generalization,
    plot_scale_selection_histogram,
)

COLUMNS = 3


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure or a table of the paper.

    Args:
        where: Where it is in the paper.
        curves: For each panel of curves its title, the data set, and its runs.
        histograms: The run of each panel of scale selection.
        picture: A picture in the folder of a run, instead of panels.
        table: Runs of which there is only a table.
    """

    where: str
    curves: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    histograms: tuple[str, ...] = ()
    picture: tuple[str, str] | None = None
    table: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[str, ...]:
        """The experiments that it needs, each once, before those that start from it."""
        of_curves = [run for runs in self.curves.values() for run in runs]
        others = (*self.histograms, *(self.picture or ())[:1], *self.table)
        return tuple(dict.fromkeys((*of_curves, *others)))

    def of_dataset(self, dataset: str) -> "Figure":
        """Only the panels of one data set."""
        curves = {
            title: runs for title, runs in self.curves.items() if title == dataset
        }
        histograms = tuple(run for run in self.histograms if run.startswith(dataset))
        return dataclasses.replace(self, curves=curves, histograms=histograms)


def _with_poolings(dataset: str, *suffixes: str) -> tuple[str, ...]:
    return tuple(f"{dataset}_{p}{suffix}" for suffix in suffixes for p in POOLINGS)


def _curves(*suffixes: str) -> dict[str, tuple[str, ...]]:
    return {dataset: _with_poolings(dataset, *suffixes) for dataset in RESCALED}


def _smoothing(run: str) -> float:
    return EXPERIMENTS[run].stages[0].recipe.label_smoothing


def _label_smoothing(dataset: str) -> tuple[str, ...]:
    """All three poolings with label smoothing, then without."""
    suffixes = ("", "_with_label_smoothing", "_without_label_smoothing")
    runs = (f"{dataset}_{p}{suffix}" for p in POOLINGS for suffix in suffixes)
    known = [run for run in runs if run in EXPERIMENTS]
    return tuple(sorted(known, key=lambda run: not _smoothing(run)))


# Without the zero-order term, and with it.
_ZERO_ORDER = {
    "fashion_mnist": ("fashion_mnist_max", "fashion_mnist_zero_order"),
    "cifar10": ("cifar10_max", "cifar10_zero_order"),
    "stl10": ("stl10_without_zero_order", "stl10_average"),
}
_OF_THREE_DATASETS = {
    "poolings": Figure("Sec. 6.2, scale generalization", _curves("")),
    "zero_order": Figure(
        "Sec. 7.1, zero-order term",
        _ZERO_ORDER,
        tuple(run for _, run in _ZERO_ORDER.values()),
    ),
    "single": Figure("A.1, one scale channel", {d: (f"{d}_single",) for d in RESCALED}),
    "separable": Figure("A.2, depthwise-separable", _curves("", "_separable")),
    "separable_scale_selection": Figure(
        "A.2, scale selection",
        histograms=tuple(f"{dataset}_max_separable" for dataset in RESCALED),
    ),
    "label_smoothing": Figure(
        "A.3, label smoothing", {d: _label_smoothing(d) for d in RESCALED}
    ),
    "pretrained": Figure("A.4, pre-training", _curves("", "_pretrained")),
    "dense": Figure("A.5, denser scale channels", _curves("", "_dense")),
}
FIGURES = {
    "basis_kernels": Figure("Sec. 3.1, kernels up to order 3"),
    "stl10_single_scale": Figure(
        "Sec. 6.1, table of the regular STL-10",
        table=("stl10_single_scale_without_label_smoothing", "stl10_single_scale"),
    ),
    "cifar10_scale_selection": Figure(
        "Sec. 6.2, scale selection on CIFAR-10",
        histograms=tuple(r for r in _label_smoothing("cifar10") if not _smoothing(r)),
    ),
    "stl10_scale_selection": Figure(
        "Sec. 6.2, scale selection on STL-10", histograms=_with_poolings("stl10", "")
    ),
    "activation_maps": Figure(
        "Sec. 8, activation maps", picture=("stl10_average", "activation_maps.png")
    ),
    "effective_filters": Figure(
        "A.6, effective filters", picture=("stl10_single", "effective_filters.png")
    ),
    **{
        f"{dataset}_label_smoothing_scale_selection": Figure(
            "A.3, scale selection", histograms=_label_smoothing(dataset)
        )
        for dataset in RESCALED
    },
    **_OF_THREE_DATASETS,
    **{
        f"{name}_{dataset}": figure.of_dataset(dataset)
        for name, figure in _OF_THREE_DATASETS.items()
        for dataset in RESCALED
    },
}


def draw(figure: Figure, folders: Mapping[str, Path], file: Path) -> Iterable[Path]:
    """Draws a figure, and writes the table of its runs next to it.

    Args:
        figure: One of `FIGURES`.
        folders: Folders of its runs, which are complete.
        file: File of the picture; that of the table ends in `.md`.

    Returns:
        The files that were written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    if not figure.runs:
        plot_basis_kernels((1.0, 4.0), order=3).savefig(file)
        return [file]
    records = {
        run: json.loads((folders[run] / "results.json").read_text(encoding="utf-8"))
        for run in figure.runs
    }
    table = file.with_suffix(".md")
    text = f"# {figure.where}\n\n{report(list(records.values()))}\n"
    table.write_text(text, encoding="utf-8")
    if figure.table:
        return [table]
    if figure.picture:
        run, name = figure.picture
        shutil.copyfile(folders[run] / name, file)
    else:
        _panels(figure, records).savefig(file)
    return [file, table]


def _panels(figure: Figure, records: Mapping[str, Any]) -> Picture:
    count = len(figure.curves) + len(figure.histograms)
    columns, rows = min(COLUMNS, count), -(-count // COLUMNS)
    size = (5.6 * columns, 4.6 * rows)
    picture = Picture(figsize=size, dpi=150, layout="constrained")
    panels = iter(picture.subplots(rows, columns, squeeze=False).flat)
    for dataset, runs in figure.curves.items():
        curves = {}
        for run in runs:
            values = records[run]["factors"], records[run]["accuracies"][run]
            name = run.removeprefix(f"{dataset}_")
            curves[name] = ScaleGeneralization(*map(np.array, values))
        axes = next(panels)
        plot_scale_generalization(curves, axes=axes)
        axes.set_ylabel(f"accuracy on {dataset} [%]")
    for run in figure.histograms:
        names = ("factors", "sigma0", "scale_selection")
        values = (np.array(records[run][name]) for name in names)
        axes = next(panels)
        plot_scale_selection_histogram(ScaleSelectionHistogram(*values), axes=axes)
        axes.set_title(run)
    for axes in panels:
        axes.set_axis_off()
    return picture
