"""As if packages were not installed, in a process of its own.

`python -m tests.without NAME,NAME… PROGRAM ARGUMENTS…` runs a program so.
"""

import runpy
import sys
from pathlib import Path

TENSORFLOW = ("tensorflow", "tensorflow_datasets")


class _Missing:
    """Finds none of the packages."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def block(*names: str) -> None:
    """From now on, no package of these names can be imported."""
    sys.meta_path.insert(0, _Missing(names))


if __name__ == "__main__":
    _, packages, *sys.argv = sys.argv
    block(*packages.split(","))
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
