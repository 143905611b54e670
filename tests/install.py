"""Installs the package into an empty environment, and tries it from outside.

    python tests/install.py

builds the wheel, and runs smoke.py in another folder, in an environment that has
nothing but the package and what it depends on. pip downloads TensorFlow for it.
"""

import os
import subprocess
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        program = "Scripts/python.exe" if os.name == "nt" else "bin/python"
        python = str(Path(folder) / program)
        subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], check=True)
        # -I: neither the folder of the script nor PYTHONPATH are searched.
        smoke = [python, "-I", ROOT / "tests" / "smoke.py"]
        subprocess.run(smoke, cwd=folder, check=True)
    print("It can be installed, and works.")


if __name__ == "__main__":
    main()
