"""As if packages were not installed, in a process of its own.

`python -m tests.without NAME,NAME… PROGRAM ARGUMENTS…` runs a program so.
"""

import runpy
import sys
from pathlib import Path

TENSORFLOW = ("tensorflow", "tensorflow_datasets")


class _Without:
    """A finder of modules that finds none of some packages."""

    def __init__(self, finder, names):
        self.finder, self.names = finder, names

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


def block(*names: str) -> None:
    """From now on, no package of these names is found."""
    sys.meta_path[:] = [_Without(finder, names) for finder in sys.meta_path]


if __name__ == "__main__":
    _, packages, *sys.argv = sys.argv
    block(*packages.split(","))
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
