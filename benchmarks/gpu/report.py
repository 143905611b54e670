"""One JSON and tables of what `run.py` has measured so far."""

import json
from pathlib import Path

from journal import Journal
from precision import PRECISIONS

from keras_gdrn.visualization import markdown_table

MEBI = 2**20


def write(journal: Journal, out: Path) -> list[Path]:
    """The files that were written into the folder `out`."""
    results = [{"key": key, **result} for key, result in journal.of().items()]
    files = [out / "gpu.json", out / "gpu.md"]
    content = {"about": journal.about, "results": results}
    files[0].write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    files[1].write_text("\n".join(_page(journal)), encoding="utf-8")
    return files


def _page(journal: Journal) -> list[str]:
    about = journal.about
    tables = {
        "Errors of layers, relative to float64": _layers(journal),
        "Errors of networks, relative to float64": _networks(journal),
        f"Time and memory, {about['batch']} images": _speed(journal),
        "Batches": _batches(journal),
    }
    lines = [f"# {about['device']}", "", about["versions"]]
    if about["quick"]:
        lines += ["", "Of a quick run, which says nothing about speed."]
    for (at,), peak in journal.of("peak").items():
        operations, bandwidth = peak["operations"] / 1e12, peak["bandwidth"] / 1e12
        lines += [
            "",
            f"Peak in {at}: {operations:.3g} TFLOP/s, {bandwidth:.3g} TB/s "
            f"({peak['source']}).",
        ]
    for title, rows in tables.items():
        if len(rows) > 1:
            lines += ["", f"## {title}", "", markdown_table(rows)]
    return [*lines, ""]


def _layers(journal: Journal) -> list[list[str]]:
    header = ["layer", "σ", "of", "truncation", *PRECISIONS]
    rows = []
    for (layer, sigma), errors in journal.of("errors", "layer").items():
        rows += _of_errors([layer, sigma], errors, _truncation)
    return [header, *rows]


def _networks(journal: Journal) -> list[list[str]]:
    rows = []
    for (name, scales), errors in journal.of("errors", "network").items():
        rows += _of_errors([name, scales], errors)
    return [["network", "σ₀", "of", *PRECISIONS], *rows]


def _truncation(errors: dict) -> str:
    return f"{errors['truncation']:.1e}" if "truncation" in errors else "–"


def _of_errors(names: list[str], errors: dict, *more) -> list[list[str]]:
    if "failed" in errors:
        return [[*names, errors["failed"], *["–"] * (len(more) + len(PRECISIONS))]]
    further = [cell(errors) for cell in more]
    return [
        [*names, of, *further, *(f"{errors[at][of]:.1e}" for at in PRECISIONS)]
        for of in errors["float32"]
    ]


# What the tables say of a step, and how.
COLUMNS = {
    "images": lambda r: str(r["images"]),
    "time": lambda r: f"{1000 * r['seconds']:.2f} ms",
    "ratio": lambda r: f"{r['ratio']:.3f}",
    "memory": lambda r: f"{r['memory'] / MEBI:.0f} MiB",
    "tracing": lambda r: f"{r['tracing']:.1f} s",
    "compiling": lambda r: f"{r['compiling']:.1f} s",
    "GFLOP": lambda r: f"{r['operations'] / 1e9:.3g}",
    "moved": lambda r: f"{r['moved'] / MEBI:.0f} MiB",
    "roofline": lambda r: f"{100 * r['share']:.1f} %, {r['bound']}",
    "products": lambda r: f"{100 * r['share of products']:.1f} %",
}


def _speed(journal: Journal) -> list[list[str]]:
    rows = [
        [*key, *_cells(result, COLUMNS)] for key, result in journal.of("speed").items()
    ]
    return [["precision", "preset", "task", "network", *COLUMNS], *rows]


def _batches(journal: Journal) -> list[list[str]]:
    columns = {
        "images/s": lambda r: f"{r['images'] / r['seconds']:.0f}",
        **{name: COLUMNS[name] for name in ("time", "memory", "roofline", "products")},
    }
    rows = [
        [*key, *_cells(result, columns)]
        for key, result in journal.of("batches").items()
    ]
    return [["precision", "preset", "images", *columns], *rows]


def _cells(result: dict, columns: dict) -> list[str]:
    if "failed" in result:
        return [result["failed"], *["–"] * (len(columns) - 1)]
    return [cell(result) for cell in columns.values()]
