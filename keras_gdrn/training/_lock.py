"""One folder, one process."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = "partial.lock"

_HELD: set[IO] = set()


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
    path = Path(folder) / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _locked(path)
    _HELD.add(file)
    try:
        yield
    finally:
        if file in _HELD:  # not in a process that was forked meanwhile
            # In this order: who opens the file now finds that it is gone.
            with contextlib.suppress(OSError):  # Windows keeps a file that is open
                path.unlink()
            file.close()
            _HELD.remove(file)


def _leave_to_parent() -> None:
    """A forked process has no part in the locks: else it would keep or remove them."""
    for file in _HELD:
        file.close()
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _locked(path: Path) -> IO:
    while True:
        file = path.open("a+b")
        try:
            _lock(file)
            if _is_at(file, path):
                return file
        except (BlockingIOError, PermissionError) as error:
            file.close()
            raise BlockingIOError(
                f"{path.parent} is in use by another process, which is at work on the "
                "same run: wait for its end, or choose another folder."
            ) from error
        except OSError as error:  # some network file systems, drives in the cloud
            warnings.warn(
                f"The file system of {path.parent} has no locks ({error}): nothing "
                "keeps a second process from the same folder. Start only one.",
                stacklevel=4,
            )
            return file
        file.close()  # whoever had it has just removed it


def _lock(file: IO) -> None:
    if sys.platform == "win32":
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_at(file: IO, path: Path) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
