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
    """Lock a folder for this process, for as long as the context lasts.

    The lock is released when the process ends, in any way. If the file system has no
    locks, this warns.

    Args:
        folder: The folder, created if needed. Meanwhile it holds `partial.lock`.
        seconds: Time to wait for another process to release the folder.

    Returns:
        A context manager; inside it, no other process can lock the folder.

    Raises:
        BlockingIOError: If another process, or another call in this one, has the lock.

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
            f"{path.parent} is in use by another process: wait until it ends, or "
            "choose another folder."
        ) from error
    except (OSError, NotImplementedError) as error:  # some network file systems
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
        # In this order: a process that opens the file now finds that it is gone.
        with contextlib.suppress(OSError):  # Windows keeps a file that is open
            path.unlink()
        lock.release()


def claim_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Reserve a folder for a run, or raise an error that lists what differs.

    Args:
        folder: Folder of the run, created if needed. It gets a `settings.json`.
        settings: All that determines the result, for JSON.

    Raises:
        FileExistsError: If the folder holds other files or other settings.
    """
    file, text = folder / SETTINGS, json.dumps(settings, indent=2, default=plain)
    folder.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        names = sorted(path.name for path in folder.iterdir())
        others = [name for name in names if not name.startswith("partial")]
        if others:
            raise FileExistsError(
                f"{folder} holds files that are not of such a run: choose another "
                f"folder. Received: {', '.join(others[:3])}"
            )
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
            f"{folder} holds a run with other settings. Choose another folder, or use "
            "the same settings:\n" + "\n".join(differing)
        )


def _values(settings: Any) -> dict[str, Any]:
    """The values by their path, such as `recipe.epochs`."""
    pairs = keras.tree.flatten_with_path(settings)
    return {".".join(map(str, path)): value for path, value in pairs}


def _differences(recorded: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """A line for each value that differs, the least nested first."""
    lines = []
    for name in sorted({**recorded, **wanted}, key=lambda name: name.count(".")):
        old, new = recorded.get(name, "nothing"), wanted.get(name, "nothing")
        if old != new:
            lines.append(f"  {name}: {old!s:.100}, now {new!s:.100}")
    return lines
