"""The folder of a run: one process at a time, and only with the same settings."""

import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

SETTINGS = "settings.json"

_SHOWN = 8  # differences


@contextlib.contextmanager
def lock_folder(folder: str | os.PathLike) -> Iterator[None]:
    """Keeps a folder to this process for as long as the context lasts.

    The operating system holds the lock: it is free again when the process has ended,
    however it did.

    Args:
        folder: Made if need be. The file `partial.lock` is in it meanwhile.

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
    path = Path(folder) / "partial.lock"
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
        if lock.is_locked:  # not in a process that was forked meanwhile
            # In this order: who opens the file now finds that it is gone.
            with contextlib.suppress(OSError):  # Windows keeps a file that is open
                path.unlink()
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
    differing = _differences(dict(_values(_read(file))), dict(_values(wanted)))
    if differing:
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


def _values(settings: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The single values, by the names that lead to them: `recipe.epochs`."""
    if not settings or not isinstance(settings, dict | list):
        yield name, settings
        return
    is_dict = isinstance(settings, dict)
    for part, value in settings.items() if is_dict else enumerate(settings):
        yield from _values(value, f"{name}.{part}" if name else str(part))


def _differences(recorded: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """A line for each value that differs, first those that are not deep inside."""
    lines = []
    for name in sorted({**recorded, **wanted}, key=lambda name: name.count(".")):
        old, new = recorded.get(name, "nothing"), wanted.get(name, "nothing")
        if old != new:
            lines.append(f"  {name}: {_short(old)}, now {_short(new)}")
    return lines


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
