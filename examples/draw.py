"""Draws a figure of the paper from the folders of the runs that it compares."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from collect import report
from figures import CURVES, HISTOGRAM, TABLE, Figure, Panel
from matplotlib.figure import Figure as Picture

from keras_gdrn.evaluation import ScaleGeneralization, ScaleSelectionHistogram
from keras_gdrn.visualization import (
    plot_basis_kernels,
    plot_scale_generalization,
    plot_scale_selection_histogram,
)

COLUMNS = 3


def draw(figure: Figure, folders: Mapping[str, Path], file: Path) -> list[Path]:
    """Draws a figure, and writes the table of its runs beside it.

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
    records = {run: _record(folders[run]) for run in figure.runs}
    table = file.with_suffix(".md")
    text = f"# {figure.where}\n\n{report(list(records.values()))}\n"
    table.write_text(text, encoding="utf-8")
    kinds = {panel.kind for panel in figure.panels}
    if kinds == {TABLE}:
        return [table]
    if kinds <= {CURVES, HISTOGRAM}:
        _panels(figure, records).savefig(file)
    else:  # a picture of one run
        (panel,) = figure.panels
        shutil.copyfile(folders[panel.runs[0]] / panel.kind, file)
    return [file, table]


def _panels(figure: Figure, records: Mapping[str, Any]) -> Picture:
    columns = min(COLUMNS, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    size = (5.6 * columns, 4.6 * rows)
    picture = Picture(figsize=size, dpi=150, layout="constrained")
    grid = picture.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(figure.panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, figure.panels, strict=False):
        _panel(axes, panel, records)
    return picture


def _panel(axes: Any, panel: Panel, records: Mapping[str, Any]) -> None:
    if panel.kind == HISTOGRAM:
        plot_scale_selection_histogram(_histogram(records[panel.runs[0]]), axes=axes)
        axes.set_title(panel.title)
        return
    curves = {
        run.removeprefix(f"{panel.title}_"): ScaleGeneralization(
            np.array(records[run]["factors"]),
            np.array(records[run]["accuracies"][run]),
        )
        for run in panel.runs
    }
    plot_scale_generalization(curves, axes=axes)
    axes.set_ylabel(f"accuracy on {panel.title} [%]")


def _histogram(record: Mapping[str, Any]) -> ScaleSelectionHistogram:
    names = ("factors", "sigma0", "scale_selection")
    return ScaleSelectionHistogram(*(np.array(record[name]) for name in names))


def _record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))
