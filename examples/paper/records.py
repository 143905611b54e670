"""Records of runs, and tables of several."""

import datetime
import json
import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import keras
import numpy as np

import keras_gdrn
from keras_gdrn.commands import write_text
from keras_gdrn.evaluation import ScaleGeneralization
from keras_gdrn.visualization import markdown_table, size_label

# Records by the label of their run in tables: its name, or its folder.
Records = Mapping[str, Mapping[str, Any]]


def write_record(out: Path, record: Mapping[str, Any]) -> None:
    """Writes results.md and, last of all that a run writes, results.json."""
    record = {
        **record,
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.date.today().isoformat(),
        "environment": environment(),
        "environments": environments(out),
    }
    text = report({record["name"]: record})
    print(f"\n{text}\n\nTable and pictures are in {out}")
    write_text(out / "results.md", f"{text}\n")
    write_text(out / "results.json", json.dumps(record, indent=2) + "\n")


def read_records(folders: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """The records of the complete runs, by their folders."""
    files = {str(folder): folder / "results.json" for folder in folders}
    found = {name: file for name, file in files.items() if file.exists()}
    if not found:
        raise FileNotFoundError(f"there is no results.json in {', '.join(files)}")
    return {n: json.loads(f.read_text(encoding="utf-8")) for n, f in found.items()}


def networks(records: Records) -> Iterator[tuple[str, str, dict[float, float]]]:
    """Run, name and accuracies at each size of every network that was tested.

    A stage that several runs share comes once.
    """
    stages = set()
    for run, record in records.items():
        for name, accuracies in record["accuracies"].items():
            stage = name.partition(", ")[2]
            key = (stage, record["seed"], *accuracies)
            if not stage or key not in stages:
                factors = record["factors"]
                label = f"{run}, {stage}" if stage else run
                yield run, label, dict(zip(factors, accuracies, strict=True))
            stages.add(key)


def curves(records: Records) -> dict[str, ScaleGeneralization]:
    """The accuracies of all networks that were tested at several sizes."""
    return {
        label: ScaleGeneralization(np.array([*own]), np.array([*own.values()]))
        for _, label, own in networks(records)
        if len(own) > 1
    }


def report(records: Records) -> str:
    """A table with a row for each network, and how each run was made."""
    factors = sorted({f for record in records.values() for f in record["factors"]})
    rows = [["network", *map(size_label, factors)]]
    for _, label, own in networks(records):
        cells = [f"{100 * own[f]:.2f}" if f in own else "–" for f in factors]
        # Spaces allow line breaks in a narrow column.
        rows.append([label.replace("_", " "), *cells])
    title = "Accuracy in percent at each size factor (training: 1)."
    notes = "\n".join(map(_note, records.values()))
    return "\n\n".join([title, markdown_table(rows), notes])


def over_seeds(records: Records) -> str:
    """A table with a row for the runs that differ only in their seed."""
    groups: dict[tuple, list] = {}
    for run, label, own in networks(records):
        record = records[run]
        name = f"{record['name']}{label.removeprefix(run)}"
        key = name, json.dumps(record["experiment"]), record["policy"]
        groups.setdefault(key, []).append((run, own))
    times = Counter(name for name, *_ in groups)
    factors = sorted({f for runs in groups.values() for _, own in runs for f in own})
    rows = [["network", "seeds", *map(size_label, factors), "mean"]]
    for (name, *_), runs in groups.items():
        if all(list(own) == factors for _, own in runs):  # not tested at one size
            table = 100 * np.array([list(own.values()) for _, own in runs])
            columns = *table.T, table.mean(axis=1)
            label = f"{name} ({runs[0][0]}, …)" if times[name] > 1 else name
            cells = map(_mean_and_deviation, columns)
            rows.append([label.replace("_", " "), str(len(runs)), *cells])
    title = "Accuracy in percent: mean and standard deviation over the seeds."
    return f"{title}\n\n{markdown_table(rows)}"


def _mean_and_deviation(values: np.ndarray) -> str:
    """Mean and deviation; a line may break between them, not after the sign."""
    deviation = (
        f" ±\N{NO-BREAK SPACE}{values.std(ddof=1):.1f}" if len(values) > 1 else ""
    )
    return f"{values.mean():.1f}{deviation}"


def _note(record: Mapping[str, Any]) -> str:
    found = record["environment"]
    others = [e for e in record.get("environments", ()) if e != found]
    seconds = sum(s for what, s in record["seconds"].items() if what != "in all")
    parts = [
        f"- `{record['command']}`: seed {record['seed']}, {record['date']}",
        f"{record['parameters']:,} parameters",
        f"trained in {seconds / 60:.0f} min on {_hardware(found)}",
        f"{record['policy']}, {_software(found)}",
        *(f"begun on {_hardware(e)}, {_software(e)}" for e in others),
        *([f"maps: {record['maps']}"] if "maps" in record else []),
    ]
    return ", ".join(parts)


def _hardware(of: Mapping[str, Any]) -> str:
    return ", ".join([f"{of['cores']} cores", of["processor"], *of["gpus"]])


def _software(of: Mapping[str, Any]) -> str:
    return f"Keras {of['keras']} on {of['backend']}"


def environments(out: Path) -> list[dict[str, Any]]:
    """Where a run was trained, the present machine included."""
    file, now = out / "environments.json", environment()
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    if now not in known:
        known.append(now)
        write_text(file, json.dumps(known, indent=2) + "\n")
    return known


def gpus(backend: str) -> list[str]:
    """Names of the devices that a backend computes on, except the CPU."""
    if backend == "jax":
        import jax

        return [d.device_kind for d in jax.devices() if d.platform != "cpu"]
    if backend == "torch":
        import torch

        count = torch.cuda.device_count()
        return [torch.cuda.get_device_name(number) for number in range(count)]
    import tensorflow as tf

    found = tf.config.list_physical_devices("GPU")
    details = map(tf.config.experimental.get_device_details, found)
    return [detail.get("device_name", "GPU") for detail in details]


def environment() -> dict[str, Any]:
    """Versions and hardware, for the record."""
    backend = keras.backend.backend()
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    names = re.findall(r"^model name\s*: (.*)$", text, re.M)
    return {
        **{m.__name__: m.__version__ for m in (keras_gdrn, keras, np)},
        backend: version(backend),
        "backend": backend,
        "system": platform.platform(),
        "processor": (*names, platform.processor() or platform.machine())[0],
        "cores": os.cpu_count(),
        "gpus": gpus(backend),
    }
