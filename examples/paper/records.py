"""What runs leave: a record of each, and tables and curves of several."""

import datetime
import json
import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from importlib.metadata import version
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from experiments import EXPERIMENTS

import keras_gdrn
from keras_gdrn.commands import replacing
from keras_gdrn.evaluation import ScaleGeneralization
from keras_gdrn.visualization import markdown_table, size_label

# Options that decide nothing, and those in which the runs of a row may differ.
_OF_THE_PLACE = {"out", "start-from", "data-dir"}
_OF_THE_ROW = {*_OF_THE_PLACE, "seed", "budget"}


def write_record(out: Path, record: Mapping[str, Any]) -> None:
    """Writes results.md and, last of all that a run writes, results.json."""
    record = {
        **record,
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.date.today().isoformat(),
        "environment": environment(),
    }
    text = report([record])
    print(f"\n{text}\n\nTable and pictures are in {out}")
    (out / "results.md").write_text(f"{text}\n", encoding="utf-8")
    with replacing(out / "results.json") as partial:
        partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def read_records(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """The records of those of the runs that are complete."""
    files = [folder / "results.json" for folder in folders]
    found = [json.loads(f.read_text(encoding="utf-8")) for f in files if f.exists()]
    if not found:
        raise FileNotFoundError(
            f"there is no results.json in {', '.join(map(str, folders))}"
        )
    return found


def curves(records: Iterable[Mapping[str, Any]]) -> dict[str, ScaleGeneralization]:
    """The accuracies of all networks that were tested at several sizes."""
    return {
        label: ScaleGeneralization(np.array(record["factors"]), np.array(accuracies))
        for record, _, label, accuracies in _networks(records)
        if len(accuracies) > 1
    }


def report(records: Sequence[Mapping[str, Any]]) -> str:
    """A table with a row for each network, and how each run was made."""
    factors = sorted({factor for record in records for factor in record["factors"]})
    found = list(_networks(records))
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
    """A row for the runs that differ in their seed only."""
    groups: dict[str, list] = {}
    for record, name, _, accuracies in _networks(records):
        label = ", ".join([_words(name), *_options(record["command"], _OF_THE_ROW)])
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


def _networks(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple]:
    """Each record with name, label and accuracies of each of its networks.

    A stage that one run has taken over from another comes once. Networks of one name
    differ by the options of their commands.
    """
    found, stages = [], set()
    for record in records:
        for name, accuracies in record["accuracies"].items():
            stage = name.partition(", ")[2]
            key = (stage, record["seed"], *accuracies)
            if not stage or key not in stages:
                found.append((record, name, accuracies))
            stages.add(key)
    times = Counter(name for _, name, _ in found)
    for record, name, accuracies in found:
        options = ", ".join(_options(record["command"], _OF_THE_PLACE))
        more = f" ({options})" if times[name] > 1 and options else ""
        yield record, name, _words(name) + more, accuracies


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
    hardware = [f"{found['cores']} cores", found["processor"], *found["gpus"]]
    return (
        f"- `{record['command']}`: seed {record['seed']}, {record['date']}, "
        f"{record['parameters']:,} parameters, trained in {seconds / 60:.0f} min on "
        f"{', '.join(hardware)}, {record['policy']}, Keras "
        f"{found['keras']} on {found['backend']}"
    ) + (f", maps: {record['maps']}" if "maps" in record else "")


def environment() -> dict[str, Any]:
    """Versions and hardware, for the record."""
    gpus = tf.config.list_physical_devices("GPU")
    details = map(tf.config.experimental.get_device_details, gpus)
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    names = re.findall(r"^model name\s*: (.*)$", text, re.M)
    return {
        "keras_gdrn": keras_gdrn.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("keras", "tensorflow", "numpy")},
        "backend": keras.backend.backend(),
        "system": platform.platform(),
        "processor": (*names, platform.processor() or platform.machine())[0],
        "cores": os.cpu_count(),
        "gpus": [detail.get("device_name", "GPU") for detail in details],
    }
