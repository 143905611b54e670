"""Collects the results of runs into one table, published numbers beside ours.

    python examples/collect.py runs/*
    python examples/collect.py runs/* --readme README.md --figure docs/results.png
    python examples/collect.py runs/* --seeds

The second puts the table between the marks `<!-- results -->` and `<!-- /results -->`
of a file, and draws all curves into one figure. The third has a row for the runs of a
command with any seed: mean and standard deviation. Only folders with a `results.json`
count, so only runs that were completed.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from experiments import EXPERIMENTS

from keras_gdrn.commands import errors_in_one_line
from keras_gdrn.evaluation import ScaleGeneralization
from keras_gdrn.visualization import (
    markdown_table,
    plot_scale_generalization,
    size_label,
)

# Options that do not tell runs apart; and those that runs of a row may differ in.
_BESIDE = {"out", "start-from", "data-dir"}
_NOT_DECISIVE = {*_BESIDE, "seed", "budget"}

BEGIN, END = "<!-- results -->", "<!-- /results -->"


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--seeds", action="store_true", help="mean and deviation")
    parser.add_argument("--readme", type=Path, help="file to put the table into")
    parser.add_argument("--figure", type=Path, help="file to draw the curves into")
    options = parser.parse_args()
    records = read(options.folders)
    if not records:
        names = ", ".join(map(str, options.folders))
        sys.exit(f"error: there is no results.json in {names}")
    text = over_seeds(records) if options.seeds else report(records)
    print(text)
    if options.readme:
        insert(options.readme, text)
    if options.figure:
        plot_scale_generalization(curves(records)).savefig(options.figure)


def read(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """The records of the runs that are complete."""
    files = [folder / "results.json" for folder in folders]
    return [
        json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()
    ]


def curves(records: Iterable[Mapping[str, Any]]) -> dict[str, ScaleGeneralization]:
    """The accuracies of all networks that were tested at several sizes."""
    return {
        label: ScaleGeneralization(np.array(record["factors"]), np.array(accuracies))
        for record, _, label, accuracies in networks(records)
        if len(accuracies) > 1
    }


def networks(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple]:
    """Each record with name, label and accuracies of each of its networks.

    A stage that one run has taken over from another comes once. Networks of one name
    are told apart by the options of their commands.
    """
    found, stages = [], set()
    for record in records:
        for name, accuracies in record["accuracies"].items():
            stage = name.partition(", ")[2]
            key = (stage, record["seed"], *accuracies)
            if stage and key in stages:
                continue
            stages.add(key)
            found.append((record, name, accuracies))
    times = Counter(name for _, name, _ in found)
    for record, name, accuracies in found:
        options = ", ".join(_options(record["command"], _BESIDE))
        label = _words(name)
        if times[name] > 1 and options:
            label += f" ({options})"
        yield record, name, label, accuracies


def report(records: Sequence[Mapping[str, Any]]) -> str:
    """A table with a row for each network, and how each run was made."""
    factors = sorted({factor for record in records for factor in record["factors"]})
    found = list(networks(records))
    published = {name: of.published for name, of in EXPERIMENTS.items()}
    known = any(published.get(name) for _, name, *_ in found)
    rows = [["network", *map(size_label, factors), *["published at 1"] * known]]
    for record, name, label, accuracies in found:
        own = dict(zip(record["factors"], accuracies, strict=True))
        cells = [f"{100 * own[f]:.2f}" if f in own else "–" for f in factors]
        rows.append([label, *cells, *[published.get(name) or "–"] * known])
    title = "Accuracy in percent at each size factor (training: 1)."
    return "\n\n".join([title, markdown_table(rows), "\n".join(map(_note, records))])


def over_seeds(records: Iterable[Mapping[str, Any]]) -> str:
    """A row for the runs that differ in their seed alone."""
    groups: dict[str, list] = {}
    for record, name, _, accuracies in networks(records):
        label = ", ".join([_words(name), *_options(record["command"], _NOT_DECISIVE)])
        groups.setdefault(label, []).append((record["factors"], accuracies))
    factors = sorted({f for runs in groups.values() for own, _ in runs for f in own})
    rows = [["network", "seeds", *map(size_label, factors), "mean"]]
    for label, runs in groups.items():
        if any(list(own) != factors for own, _ in runs):
            continue  # tested at one size
        table = 100 * np.array([accuracies for _, accuracies in runs])
        table = np.column_stack([table, table.mean(axis=1)])
        rows.append([label, str(len(runs)), *map(_mean_and_deviation, table.T)])
    title = "Accuracy in percent: mean and standard deviation over the seeds."
    return "\n\n".join([title, markdown_table(rows)])


def _options(command: str, but: Set[str]) -> list[str]:
    options = command.split(" --")[1:]
    return [_words(option) for option in options if option.split()[0] not in but]


def _words(name: str) -> str:
    """A name that may be broken into lines, as a narrow column needs it."""
    return name.replace("_", " ")


def _mean_and_deviation(values: np.ndarray) -> str:
    """The deviation may come on a line of its own, but with its sign."""
    mean = f"{values.mean():.1f}"
    if len(values) == 1:
        return mean
    return f"{mean} ±\N{NO-BREAK SPACE}{values.std(ddof=1):.1f}"


def _note(record: Mapping[str, Any]) -> str:
    found = record["environment"]
    seconds = sum(s for what, s in record["seconds"].items() if what != "in all")
    hardware = ", ".join([f"{found['cores']} cores, {found['processor']}"])
    return (
        f"- `{record['command']}`: seed {record['seed']}, {record['date']}, "
        f"{record['parameters']:,} parameters, trained in {seconds / 60:.0f} min on "
        f"{', '.join([hardware, *found['gpus']])}, {record['policy']}, Keras "
        f"{found['keras']} on {found['backend']}"
    ) + (f", maps: {record['maps']}" if "maps" in record else "")


def insert(path: Path, text: str) -> None:
    """Puts `text` between the two marks of a file, instead of what was there."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"error: {path} must have the lines {BEGIN} and {END}")
    partial = path.with_suffix(".partial")
    partial.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    os.replace(partial, path)


if __name__ == "__main__":
    main()
