"""The folder of a run: whose it is, and how far the run has come."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_gdrn.training._checkpoint import trained_epochs
from keras_gdrn.training._files import SETTINGS, write_whole
from keras_gdrn.training._log import keep_rows

_TOLD = 8  # differences


def claim_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Makes a folder the place of a run, or raises an error that tells what differs.

    Args:
        folder: Folder of the run, made if need be. The settings are written to its
            `settings.json`.
        settings: All that decides the result, for JSON.

    Raises:
        FileExistsError: If the folder holds other files or other settings.
    """
    wanted = json.loads(json.dumps(settings))
    file = folder / SETTINGS
    folder.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        if any(not path.name.startswith("partial") for path in folder.iterdir()):
            raise FileExistsError(f"{folder} holds files that are not of such a run.")
        write_whole(file, json.dumps(wanted, indent=2) + "\n")
    differing = _differences(_read(file), wanted)
    if differing:
        differing.sort(key=lambda line: line.split(": ")[0].count("."))
        rest = len(differing) - _TOLD
        raise FileExistsError(
            f"{folder} holds a run with other settings. Choose another folder, or "
            "repeat that run's:\n"
            + "\n".join(differing[:_TOLD])
            + (f"\n  and {rest} more" if rest > 0 else "")
        )


def resume(folder: Path, settings: Mapping[str, Any]) -> int:
    """Claims the folder, and returns how many epochs have been trained."""
    claim_folder(folder, settings)
    epochs = trained_epochs(folder)
    keep_rows(folder, epochs)
    return epochs


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # neither UTF-8 nor JSON; absurd
        content = error
    if not isinstance(content, dict):
        raise FileExistsError(
            f"{file} must be the settings of a run, as JSON. It is damaged or not of "
            "such a run: copy it back from a backup, or choose another folder. "
            f"Received: {str(content)[:80]}"
        )
    return content


def _differences(recorded: Any, wanted: Any, name: str = "") -> list[str]:
    """A line for each setting that differs, however deep it is."""
    if recorded == wanted:
        return []
    pairs = _pairs(recorded, wanted)
    if pairs is None:
        return [f"  {name.removeprefix('.')}: {_short(recorded)}, now {_short(wanted)}"]
    parts = (_differences(*pair, f"{name}.{part}") for part, pair in pairs.items())
    return list(itertools.chain.from_iterable(parts))


def _pairs(recorded: Any, wanted: Any) -> dict[Any, tuple[Any, Any]] | None:
    """What two settings consist of, by name or by number; None if they are values."""
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        names = sorted({*recorded, *wanted})
        return {name: (recorded.get(name), wanted.get(name)) for name in names}
    lists = isinstance(recorded, list) and isinstance(wanted, list)
    if lists and len(recorded) == len(wanted) and isinstance(recorded[0], dict | list):
        return dict(enumerate(zip(recorded, wanted, strict=True)))
    return None


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
