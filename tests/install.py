"""Whether the package works where it is installed: `python tests/install.py`.

Builds the wheel into an environment that has nothing but the package, Matplotlib and
what they depend on (pip downloads TensorFlow for it). There, in another folder, one
command searches, trains and saves a network, and another loads and tests it.
"""

import os
import subprocess
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEARCH = "--limit 64 --validation-limit 32 --max-trials 1 --epochs 1 --out found"
EVALUATE = "found/model.keras --dataset digits"
COMMANDS = (
    ["-m", "pip", "install", "--quiet", f"{ROOT}[viz]"],
    # -E: PYTHONPATH is not searched.
    ["-E", ROOT / "tuning" / "search.py", *SEARCH.split()],
    ["-E", ROOT / "examples" / "evaluate.py", *EVALUATE.split()],
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        program = "Scripts/python.exe" if os.name == "nt" else "bin/python"
        for command in COMMANDS:
            subprocess.run([Path(folder, program), *command], cwd=folder, check=True)
    print("It can be installed, and works.")


if __name__ == "__main__":
    main()
