"""Measurements that are kept at once, so that a later call skips them."""

import json
from pathlib import Path


class Journal:
    """A file of JSON lines: what all of it was measured on, then a line for each.

    Args:
        path: Path of the file, made if need be. A last line that is not whole, which a
            process that was killed may leave, is dropped.
        about: What numbers of one file have in common, such as the device.

    Raises:
        ValueError: If the file has the measurements of something else.
    """

    def __init__(self, path: Path, about: dict):
        self.path, self.about = path, about
        lines = (
            path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        )
        found, *records = map(json.loads, lines or [json.dumps(about)])
        if found != about:
            raise ValueError(
                "`out` must be a new folder, or that of the same device, versions and "
                f"settings. Received: out={str(path.parent)!r}, measured on {found}; "
                f"this is {about}"
            )
        self._records = {tuple(record["key"]): record["result"] for record in records}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = lines or [json.dumps(about, ensure_ascii=False)]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return key in self._records

    def __getitem__(self, key: tuple[str, ...]) -> dict:
        return self._records[key]

    def add(self, key: tuple[str, ...], result: dict) -> None:
        line = json.dumps({"key": key, "result": result}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        self._records[key] = result

    def of(self, *beginning: str) -> dict[tuple[str, ...], dict]:
        """The results whose keys begin like this, by the rest of the key."""
        length = len(beginning)
        return {
            key[length:]: result
            for key, result in self._records.items()
            if key[:length] == beginning
        }
