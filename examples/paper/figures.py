"""The paper's figures that compare networks, as data; a list of all experiments."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from budgets import within
from cost import EXPLANATION, cost
from experiments import EXPERIMENTS, POOLINGS, RESCALED
from records import read_records, report
from run import images_of

from keras_gdrn.commands import save_figure, write_text
from keras_gdrn.evaluation import ScaleGeneralization, ScaleSelectionHistogram
from keras_gdrn.visualization import (
    plot_scale_generalization,
    plot_scale_selection_histogram,
)

COLUMNS = 3


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of the paper: panels of curves, and of scale selection."""

    where: str  # in the paper
    curves: Mapping[str, tuple[str, ...]]  # the runs of each panel, by its data set
    histograms: tuple[str, ...] = ()  # the run of each panel

    @property
    def runs(self) -> tuple[str, ...]:
        """The experiments that it needs, each once, before those that start from it."""
        of_curves = [run for runs in self.curves.values() for run in runs]
        return tuple(dict.fromkeys((*of_curves, *self.histograms)))


def _with_poolings(dataset: str, *suffixes: str) -> tuple[str, ...]:
    return tuple(f"{dataset}_{p}{suffix}" for suffix in suffixes for p in POOLINGS)


def _is_smoothed(run: str) -> bool:
    return EXPERIMENTS[run].stages[0].recipe.label_smoothing > 0


def _label_smoothing(dataset: str) -> tuple[str, ...]:
    """All three poolings with label smoothing, then without."""
    ends = ("", "_with_label_smoothing", "_without_label_smoothing")
    runs = (f"{dataset}_{p}{end}" for p in POOLINGS for end in ends)
    known = (run for run in runs if run in EXPERIMENTS)
    return tuple(sorted(known, key=_is_smoothed, reverse=True))


# Without the zero-order term, and with it.
_ZERO_ORDER = {
    "fashion_mnist": ("fashion_mnist_max", "fashion_mnist_zero_order"),
    "cifar10": ("cifar10_max", "cifar10_zero_order"),
    "stl10": ("stl10_without_zero_order", "stl10_average"),
}


def _figures_for(datasets: Sequence[str]) -> dict[str, Figure]:
    """The figures that have a panel for each data set."""

    def curves(*suffixes: str) -> dict[str, tuple[str, ...]]:
        return {dataset: _with_poolings(dataset, *suffixes) for dataset in datasets}

    zero = {dataset: _ZERO_ORDER[dataset] for dataset in datasets}
    single = {dataset: (f"{dataset}_single",) for dataset in datasets}
    smoothing = {dataset: _label_smoothing(dataset) for dataset in datasets}
    with_zero = tuple(run for _, run in zero.values())
    separable = tuple(f"{dataset}_max_separable" for dataset in datasets)
    return {
        "poolings": Figure("Sec. 6.2, scale generalization", curves("")),
        "zero_order": Figure("Sec. 7.1, zero-order term", zero, with_zero),
        "single": Figure("A.1, one scale channel", single),
        "separable": Figure("A.2, depthwise-separable", curves("", "_separable")),
        "separable_scale_selection": Figure("A.2, scale selection", {}, separable),
        "label_smoothing": Figure("A.3, label smoothing", smoothing),
        "pretrained": Figure("A.4, pre-training", curves("", "_pretrained")),
        "dense": Figure("A.5, denser scale channels", curves("", "_dense")),
    }


_PLAIN_LABELS = [run for run in _label_smoothing("cifar10") if not _is_smoothed(run)]
FIGURES = {
    "cifar10_scale_selection": Figure(
        "Sec. 6.2, scale selection on CIFAR-10", {}, tuple(_PLAIN_LABELS)
    ),
    "stl10_scale_selection": Figure(
        "Sec. 6.2, scale selection on STL-10", {}, _with_poolings("stl10", "")
    ),
    **_figures_for(RESCALED),
}
for _dataset in RESCALED:
    FIGURES |= {
        f"{name}_{_dataset}": of for name, of in _figures_for((_dataset,)).items()
    }
    FIGURES[f"{_dataset}_label_smoothing_scale_selection"] = Figure(
        "A.3, scale selection", {}, _label_smoothing(_dataset)
    )


def listing(budget: str) -> str:
    """All experiments and figures by section of the paper, and what they cost."""
    sections: dict[str, list[str]] = {}
    width = max(map(len, EXPERIMENTS))
    for name, experiment in EXPERIMENTS.items():
        of = within(experiment, budget)
        work = " + ".join(
            f"{stage.recipe.epochs} × {images_of(of, stage)} in {len(stage.sigma0)}"
            for stage in of.stages
        )
        line = f"  {name.ljust(width)}  {experiment.dataset}, {work}: {cost(of)}"
        sections.setdefault(experiment.what, []).append(line)
    for name, figure in FIGURES.items():
        sections.setdefault(figure.where, []).append(f"  --figure {name}")
    # Sections, then appendices, then what is beyond the paper.
    order = sorted(sections, key=lambda w: (w[:4] != "Sec.", w[:2] != "A.", w))
    parts = ["\n".join([what, *sections[what]]) for what in order]
    parts.append(
        f"Epochs × images in scale channels, --budget {budget}. {EXPLANATION} The "
        "H100's are known for --budget full and fast. Where "
        "one channel with central selection comes first, the last layer starts with "
        "the package's weights and biases, as with He's it may lose classes."
    )
    return "\n\n".join(parts)


def draw(figure: Figure, folders: Mapping[str, Path], file: Path) -> None:
    """Draws a figure of complete runs, and writes their table to the file's `.md`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    found = read_records(folders[run] for run in figure.runs)
    records = dict(zip(figure.runs, found.values(), strict=True))
    text = f"# {figure.where}\n\n{report(records)}\n"
    write_text(file.with_suffix(".md"), text)
    count = len(figure.curves) + len(figure.histograms)
    from matplotlib.figure import Figure as Picture  # the extra `viz`

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
        names, axes = ("factors", "sigma0", "scale_selection"), next(panels)
        values = (np.array(records[run][name]) for name in names)
        plot_scale_selection_histogram(ScaleSelectionHistogram(*values), axes=axes)
        axes.set_title(run)
    for axes in panels:
        axes.set_axis_off()
    save_figure(picture, file)
