"""Builds the package, installs it into an empty environment, and tries it from outside.

    python tests/install.py

makes the wheel and the sdist, and for each of them runs smoke.py in another folder, in
an environment that has nothing but the package and what it depends on. pip downloads
TensorFlow for it, once.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        outside = Path(folder)
        wheel, sdist = built(outside)
        python = empty_environment(outside / "empty")
        # The sdist is built again in its turn; the dependencies are there by then.
        for archive, options in (
            (wheel, []),
            (sdist, ["--force-reinstall", "--no-deps"]),
        ):
            print(f"Installing {archive.name}", flush=True)
            run(python, "-m", "pip", "install", "--quiet", *options, archive)
            # -I: neither the folder of the script nor PYTHONPATH are searched.
            run(python, "-I", ROOT / "tests" / "smoke.py", cwd=outside)
    print("Both can be installed, and work.")


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    python = empty_environment(folder / "build")
    run(python, "-m", "pip", "install", "--quiet", "build")
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT)
    (wheel,), (sdist,) = ((folder / "dist").glob(f"*{s}") for s in (".whl", ".tar.gz"))
    return wheel, sdist


def empty_environment(folder: Path) -> Path:
    """The interpreter of a new virtual environment."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def run(*command, cwd: Path | None = None) -> None:
    done = subprocess.run([str(part) for part in command], cwd=cwd)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))} failed")


if __name__ == "__main__":
    main()
