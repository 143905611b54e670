"""As if packages were not installed, in a process of its own.

`python -m tests.without NAME,NAME… PROGRAM ARGUMENTS…` runs a program so.
"""

import os
import runpy
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TENSORFLOW = ("tensorflow", "tensorflow_datasets")


def block(*names: str) -> None:
    """From now on, no package of these names is found."""
    find = PathFinder.find_spec

    def find_others(name, path=None, target=None):
        return None if name in names else find(name, path, target)

    PathFinder.find_spec = find_others


def run(names: tuple[str, ...], program: str, *given) -> str:
    """What a program prints so, on JAX."""
    command = [sys.executable, "-m", "tests.without", ",".join(names), program]
    done = subprocess.run(
        [*command, *map(str, given)],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    _, packages, *sys.argv = sys.argv
    block(*packages.split(","))
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
