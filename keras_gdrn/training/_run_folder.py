"""The folder of a run: one process at a time, and only with the same settings."""

import contextlib
import itertools
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

LOCK = "partial.lock"
SETTINGS = "settings.json"

_SHOWN = 8  # differences


@contextlib.contextmanager
def lock_folder(folder: str | os.PathLike) -> Iterator[None]:
    """Keeps a folder to this process for as long as the context lasts.

    The operating system holds the lock: it is free again when the process has ended,
    however it did.

    Args:
        folder: Made if need be. The lock is on the file `partial.lock` in it.

    Returns:
        A context, in which no other process gets the folder.

    Raises:
        BlockingIOError: If the folder belongs to another process, or to another call in
            this one.

    Warns:
        UserWarning: If the file system has no locks.

    Example:

    >>> with lock_folder("runs/mine"):
    ...     search()
    """
    path = Path(folder) / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout as error:
        raise BlockingIOError(
            f"{path.parent} is in use by another process, which is at work on the "
            "same run: wait for its end, or choose another folder."
        ) from error
    except PermissionError:
        raise
    except (OSError, NotImplementedError) as error:  # some file systems in a network
        warnings.warn(
            f"The file system of {path.parent} has no locks ({error}): nothing "
            "keeps a second process from the same folder. Start only one.",
            stacklevel=3,
        )
    try:
        yield
    finally:
        lock.release()


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
        rest = len(differing) - _SHOWN
        raise FileExistsError(
            f"{folder} holds a run with other settings. Choose another folder, or "
            "repeat that run's:\n"
            + "\n".join(differing[:_SHOWN])
            + (f"\n  and {rest} more" if rest > 0 else "")
        )


def write_whole(path: Path, text: str) -> None:
    """Writes a file that is there entirely or not at all."""
    partial = path.with_name(f"partial-{path.name}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


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
