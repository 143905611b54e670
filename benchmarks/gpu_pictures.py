"""Pictures of what `gpu.py` has measured: errors, ratios, batches."""

from pathlib import Path

from gpu_journal import Journal
from gpu_precision import PRECISIONS
from matplotlib.figure import Figure

KEPT = ("training", "inference")


def draw(journal: Journal, out: Path) -> list[Path]:
    """The files of those pictures for which there are measurements."""
    drawn = {"errors": _errors, "ratios": _ratios, "batches": _batches}
    files = []
    for name, function in drawn.items():
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        if function(journal, figure):
            files.append(out / f"{name}.png")
            figure.savefig(files[-1], dpi=150)
    return files


def _errors(journal: Journal, figure: Figure) -> bool:
    """Of the output of layers, against σ."""
    layers = _succeeded(journal.of("errors", "layer"))
    axes = figure.subplots()
    for number, at in enumerate(PRECISIONS):
        for name, style in zip(("GaussDerConv", "paper's scheme"), "-:", strict=True):
            points = sorted(
                (float(sigma), errors[at]["output"])
                for (layer, sigma), errors in layers.items()
                if layer == name
            )
            label = f"{name}, {at}"
            axes.plot(*_transposed(points), style, color=f"C{number}", label=label)
    axes.set(
        xscale="log", yscale="log", xlabel="σ", ylabel="relative error of rounding"
    )
    figure.legend(loc="outside right upper", fontsize="small")
    return bool(layers)


def _ratios(journal: Journal, figure: Figure) -> bool:
    """Of the time, to the 3×3 ResNet's, for each network."""
    results = _succeeded(journal.of("speed"))
    axes = figure.subplots(1, len(KEPT), sharex=True)
    for plot, task in zip(axes, KEPT, strict=True):
        ratios = {
            f"{preset}, {name}": result["ratio"]
            for (_, preset, of, name), result in results.items()
            if of == task
        }
        plot.barh(list(ratios), list(ratios.values()))
        plot.tick_params(labelsize=6)
        plot.set(title=task, xlabel="time, relative to the 3×3 ResNet")
        plot.invert_yaxis()
        figure.set_figheight(max(4.5, 1.0 + 0.15 * len(ratios)))
    return bool(results)


def _batches(journal: Journal, figure: Figure) -> bool:
    """Images per second, against those of a batch."""
    results = _succeeded(journal.of("batches"))
    axes = figure.subplots()
    points = [(r["images"], r["images"] / r["seconds"]) for r in results.values()]
    axes.plot(*_transposed(sorted(points)), "o")
    axes.set(xscale="log", xlabel="images of a batch", ylabel="images/s, training")
    return bool(results)


def _transposed(points: list[tuple]) -> list[list]:
    return [list(column) for column in zip(*points, strict=True)] or [[], []]


def _succeeded(results: dict) -> dict:
    return {key: result for key, result in results.items() if "failed" not in result}
