"""The log of a run: a table with a row for each epoch."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_gdrn.training._run_folder import write_whole

LOG = "log.csv"


def append_row(folder: Path, row: Mapping[str, Any]) -> None:
    """Adds a row. Cells of columns that only other rows have are empty."""
    _write(folder / LOG, [*_rows(folder / LOG), row])


def keep_rows(folder: Path, epochs: int) -> None:
    """Removes rows that were written after the checkpoint.

    Raises:
        FileExistsError: If the log does not have a row for each epoch, or is damaged,
            or tells of epochs whose checkpoint is gone.
    """
    log = folder / LOG
    rows = _rows(log)
    found = [row.get("epoch") for row in rows[:epochs]]
    if found != [str(epoch) for epoch in range(epochs)]:
        raise FileExistsError(
            f"{log} must have a row for each of the {epochs} epochs of the checkpoint: "
            "copy it back from a backup, or choose another folder. "
            f"Received: rows of the epochs {found}"
        )
    # A row is written before its checkpoint; none is, of weights that are not finite.
    losses = [_value(row.get("loss")) for row in rows]
    finite = sum(isinstance(loss, float) and math.isfinite(loss) for loss in losses)
    if not epochs and finite > 1:
        raise FileExistsError(
            f"{log} has {len(rows)} epochs, but their checkpoint is gone: copy it back "
            "from a backup, or choose another folder."
        )
    if len(rows) > epochs:
        _write(log, rows[:epochs])


def history(log: Path) -> dict[str, list[Any]]:
    """The columns of a log, one value for each epoch; NaN where there is none."""
    rows = _rows(log)
    return {name: [_value(row[name]) for row in rows] for name in rows[0]}


def _rows(log: Path) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    try:
        with open(log, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (ValueError, csv.Error) as error:  # not UTF-8; not such a table
        raise _damaged(log, error) from error
    if any(None in row for row in rows):
        raise _damaged(log, "a row with more cells than there are columns")
    return rows


def _damaged(log: Path, why: Any) -> FileExistsError:
    return FileExistsError(
        f"{log} must be the log of a run, and is damaged: copy it back from a backup, "
        f"or choose another folder. Received: {why}"
    )


def _write(log: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(log, text.getvalue())


def _value(text: str | None) -> Any:
    try:
        return float(text or "nan")
    except ValueError:
        return text
