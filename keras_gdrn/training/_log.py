"""The log of a run: a table with a row for each epoch."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_gdrn.training._files import write_whole

LOG = "log.csv"


def append_row(folder: Path, row: Mapping[str, Any]) -> None:
    """Adds a row. Cells of columns that only other rows have are empty."""
    rows = [*_rows(folder / LOG), row]
    columns = dict.fromkeys(name for each in rows for name in each)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(folder / LOG, text.getvalue())


def keep_rows(folder: Path, epochs: int) -> None:
    """Removes rows that were written after the checkpoint, or in part.

    Raises:
        FileExistsError: If the log does not have a row for each epoch.
    """
    log = folder / LOG
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    if len(lines) <= epochs and epochs:
        raise FileExistsError(
            f"{log} must have a row for each of the {epochs} epochs of the checkpoint: "
            "copy it back from a backup, or choose another folder. "
            f"Received: {max(0, len(lines) - 1)} rows"
        )
    kept = lines[: epochs + 1] if epochs else []
    if kept != lines:
        write_whole(log, "".join(line + "\n" for line in kept))


def history(log: Path) -> dict[str, list[Any]]:
    """The columns of a log, one value for each epoch; NaN where there is none."""
    rows = _rows(log)
    return {name: [_value(row[name]) for row in rows] for name in rows[0]}


def _rows(log: Path) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    with open(log, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _value(text: str | None) -> Any:
    try:
        return float(text or "nan")
    except ValueError:
        return text
