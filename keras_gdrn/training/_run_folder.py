"""The folder of a run: whose it is, its log, and the checkpoint to go on from."""

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

LOG = "log.csv"
SETTINGS = "settings.json"
_SUFFIX = ".weights.h5"  # what Keras wants


def claim_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Makes a folder the place of a run, or raises an error that tells what differs.

    Args:
        folder: made if need be. The settings are written to `settings.json`.
        settings: all that decides the result, for JSON.

    Raises:
        FileExistsError: if the folder holds other files or other settings.
    """
    wanted = json.loads(json.dumps(settings))
    file = folder / SETTINGS
    folder.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        if any(not path.name.startswith("partial") for path in folder.iterdir()):
            raise FileExistsError(f"{folder} holds files that are not of such a run.")
        write_whole(file, json.dumps(wanted, indent=2) + "\n")
    found = json.loads(file.read_text(encoding="utf-8"))
    differing = sorted(
        name for name in {*wanted, *found} if found.get(name) != wanted.get(name)
    )
    if differing:
        raise FileExistsError(
            f"{folder} holds a run with other settings. Choose another folder, or "
            "repeat that run's:\n"
            + "\n".join(
                f"  {name}: {found.get(name)}, now {wanted.get(name)}"
                for name in differing
            )
        )


def save(model: keras.Model, folder: Path, epochs: int) -> None:
    """Puts the weights and the optimizer's state in the place of those before.

    There is a whole checkpoint at any moment, and its name tells its epoch.
    """
    before = _checkpoints(folder)
    partial = folder / f"partial{_SUFFIX}"
    model.save_weights(partial, overwrite=True)
    os.replace(partial, checkpoint(folder, epochs))
    for epoch, path in before.items():
        if epoch != epochs:
            path.unlink()


def resume(folder: Path, settings: Mapping[str, Any]) -> int:
    """Claims the folder, and returns how many epochs have been trained."""
    claim_folder(folder, settings)
    epochs = max(_checkpoints(folder), default=0)
    _keep_rows(folder / LOG, epochs)
    return epochs


def checkpoint(folder: Path, epochs: int) -> Path:
    """The file with what was trained in so many epochs."""
    return folder / f"epoch-{epochs:04d}{_SUFFIX}"


def append_row(folder: Path, row: Mapping[str, Any]) -> None:
    """Adds a row to the log, before it the header if need be."""
    with open(folder / LOG, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(row))
        if not file.tell():
            writer.writeheader()
        writer.writerow(row)


def history(log: Path) -> dict[str, list[float]]:
    """The columns of a log, one value for each epoch."""
    with open(log, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def write_whole(path: Path, text: str) -> None:
    """Writes a file that is there entirely or not at all."""
    partial = path.with_name(f"partial-{path.name}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def _checkpoints(folder: Path) -> dict[int, Path]:
    paths = folder.glob(f"epoch-*{_SUFFIX}")
    return {int(path.name[len("epoch-") : -len(_SUFFIX)]): path for path in paths}


def _keep_rows(log: Path, epochs: int) -> None:
    """Removes rows that were written after the checkpoint, or in part."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    kept = "".join(text.splitlines(keepends=True)[: epochs + 1]) if epochs else ""
    if kept != text:
        write_whole(log, kept)
