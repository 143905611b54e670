"""The folder of a run: one process at a time, and only with the same settings."""

import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock
import keras

from keras_gdrn._checks import plain
from keras_gdrn.commands import write_text

SETTINGS = "settings.json"

_SHOWN = 8  # differences


@contextlib.contextmanager
def lock_folder(folder: str | os.PathLike, seconds: float = 0.0) -> Iterator[None]:
    """Keeps a folder to this process for as long as the context lasts.

    The lock is free once the process has ended, however it did. Without locks of the
    file system, this warns.

    Args:
        folder: Made if need be. The file `partial.lock` is in it meanwhile.
        seconds: Time to wait for another process that has it.

    Returns:
        A context, in which no other process gets the folder.

    Raises:
        BlockingIOError: If another process, or another call in this one, has it.

    Example:

    >>> with lock_folder("runs/mine"): search()
    """
    path = Path(folder) / "partial.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=seconds)
    except filelock.Timeout as error:
        raise BlockingIOError(
            f"{path.parent} is in use by another process: wait for its end, or choose "
            "another folder."
        ) from error
    except (OSError, NotImplementedError) as error:  # some file systems in a network
        if isinstance(error, PermissionError):
            raise
        warnings.warn(
            f"The file system of {path.parent} has no locks ({error}): start only one "
            "process in this folder.",
            stacklevel=3,
        )
    try:
        yield
    finally:
        # In this order: who opens the file now finds that it is gone.
        with contextlib.suppress(OSError):  # Windows keeps a file that is open
            path.unlink()
        lock.release()


def claim_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Makes a folder the place of a run, or raises an error that tells what differs.

    Args:
        folder: Folder of the run, made if need be. It gets a `settings.json`.
        settings: All that decides the result, for JSON.

    Raises:
        FileExistsError: If the folder holds other files or other settings.
    """
    file, text = folder / SETTINGS, json.dumps(settings, indent=2, default=plain)
    folder.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        if any(not path.name.startswith("partial") for path in folder.iterdir()):
            raise FileExistsError(f"{folder} holds files that are not of such a run.")
        write_text(file, f"{text}\n")
    try:
        recorded = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # neither UTF-8 nor JSON
        raise FileExistsError(
            f"{file} must be the settings of a run, as JSON: copy it back from a "
            f"backup, or choose another folder. Received: {error}"
        ) from error
    differing = _differences(_values(recorded), _values(json.loads(text)))
    if differing:
        rest = len(differing) - _SHOWN
        differing[_SHOWN:] = [f"  and {rest} more"] if rest > 0 else []
        raise FileExistsError(
            f"{folder} holds a run with other settings. Choose another folder, or "
            "repeat that run's:\n" + "\n".join(differing)
        )


def _values(settings: Any) -> dict[str, Any]:
    """The single values, by the names that lead to them: `recipe.epochs`."""
    pairs = keras.tree.flatten_with_path(settings)
    return {".".join(map(str, path)): value for path, value in pairs}


def _differences(recorded: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """A line for each value that differs, first those that are not deep inside."""
    lines = []
    for name in sorted({**recorded, **wanted}, key=lambda name: name.count(".")):
        old, new = recorded.get(name, "nothing"), wanted.get(name, "nothing")
        if old != new:
            lines.append(f"  {name}: {old!s:.100}, now {new!s:.100}")
    return lines
