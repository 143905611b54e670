"""Files that are there entirely or not at all, and that tell when they are damaged."""

import hashlib
import os
from pathlib import Path

SETTINGS = "settings.json"  # of a run, in its folder

# Ends the content and is followed by its SHA-256. HDF5 ignores what is behind its end.
_MARK = b"\nsha256:"
_LENGTH = len(_MARK) + hashlib.sha256().digest_size


def write_whole(path: Path, text: str) -> None:
    """Writes a file that is there entirely or not at all."""
    partial = path.with_name(f"partial-{path.name}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def append_checksum(path: Path, of: bytes = b"") -> None:
    """Adds to the end of a file the checksum of it and of what it belongs to."""
    digest = hashlib.sha256(of + path.read_bytes()).digest()
    with path.open("ab") as file:
        file.write(_MARK + digest)


def has_valid_checksum(path: Path, of: bytes = b"") -> bool:
    """Whether a file is what it was when `append_checksum` was called."""
    content = path.read_bytes()
    digest = hashlib.sha256(of + content[:-_LENGTH]).digest()
    return content[-_LENGTH:] == _MARK + digest
