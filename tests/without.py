"""As if packages were not installed, in a process of its own.

`python -m tests.without NAME,NAME… PROGRAM ARGUMENTS…` runs a program so.
"""

import runpy
import sys
from pathlib import Path

TENSORFLOW = ("tensorflow", "tensorflow_datasets")


def block(*names: str) -> None:
    """From now on, to import a package of these names is an error."""
    sys.modules.update(dict.fromkeys(names))


if __name__ == "__main__":
    _, packages, *sys.argv = sys.argv
    block(*packages.split(","))
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
