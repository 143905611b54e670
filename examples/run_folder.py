"""The folder of a run: whose it is, its logs, and how it is resumed."""

import csv
import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras


def claim(out: Path, settings: Mapping[str, Any]) -> None:
    """Makes the folder this run's, or raises an error that tells what differs."""
    wanted = json.loads(json.dumps(settings))
    file = out / "settings.json"
    out.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        if any(out.iterdir()):
            raise FileExistsError(f"{out} holds files that are not of such a run.")
        file.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
    found = json.loads(file.read_text(encoding="utf-8"))
    differing = [name for name in wanted if found.get(name) != wanted[name]]
    if differing:
        raise FileExistsError(
            f"{out} holds a run with other settings. Choose another --out, or repeat "
            "that run's options:\n"
            + "\n".join(f"  {n}: {found.get(n)}, now {wanted[n]}" for n in differing)
        )


def callbacks(out: Path, stage: str) -> list[keras.callbacks.Callback]:
    return [
        EpochSeconds(),
        keras.callbacks.CSVLogger(out / f"{stage}.csv", append=True),
        # Kept after a stage is complete, so that it is not trained again.
        keras.callbacks.BackupAndRestore(
            out / f"backup-{stage}", double_checkpoint=True, delete_checkpoint=False
        ),
    ]


class EpochSeconds(keras.callbacks.Callback):
    """Logs how long each epoch took, for the callbacks that follow."""

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        logs["seconds"] = time.perf_counter() - self.start


def seconds_of_training(out: Path) -> dict[str, float]:
    """Time of the epochs of each stage, whatever interruptions there were."""
    seconds = {}
    for stage in ("pretrain", "train"):
        if (out / f"{stage}.csv").exists():
            with open(out / f"{stage}.csv", newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            seconds[stage] = sum(float(row["seconds"]) for row in rows)
    return seconds


def drop_backups(out: Path) -> None:
    """Removes the checkpoints of a run that is complete."""
    for backup in out.glob("backup-*"):
        shutil.rmtree(backup)
