"""A damaged file gets an error, or is read where the damage does not matter.

`python -m tests.under_fire.test_damaged_files FOLDER COUNT` reads files with random
damage in a process of its own, so that the test sees a crash.
"""

import collections
import re
import subprocess
import sys
import warnings
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

from keras_gdrn.data import read_h5
from keras_gdrn.models import gauss_der_resnet

ROOT = Path(__file__).resolve().parents[2]
# What `read_h5` promises. Keras, whose loader it is, promises nothing: any exception.
READERS = {
    ".h5": (read_h5, (OSError, ValueError)),
    ".keras": (keras.saving.load_model, (Exception,)),
}


def damaged(whole: bytes, random: np.random.Generator) -> bytes:
    """A file that is cut off, or in which some bytes or a whole run have changed."""
    content = np.frombuffer(whole, "uint8").copy()
    kind, first = random.integers(3), random.integers(len(whole))
    if kind == 0:
        return whole[:first]
    places = random.integers(len(whole), size=random.integers(1, 20))
    if kind == 1:
        places = np.arange(first, min(len(whole), first + random.integers(1, 2000)))
    content[places] = random.integers(256, size=len(places))
    return content.tobytes()


def main(folder: Path, count: int) -> None:
    random = np.random.default_rng(0)
    warnings.simplefilter("ignore")
    for original in sorted(folder.glob("whole.*")):
        whole, met = original.read_bytes(), collections.Counter()
        path, (read, errors) = original.with_stem("damaged"), READERS[original.suffix]
        for _ in range(count):
            path.write_bytes(damaged(whole, random))
            try:
                read(path)
                met["read"] += 1
            except errors as error:
                met[type(error).__name__] += 1
        print(original.suffix, dict(met))


@pytest.mark.slow
@pytest.mark.seen_on_tensorflow("files do not depend on it")
def test_no_damage_crashes_or_hangs_the_reader(tmp_path):
    with h5py.File(tmp_path / "whole.h5", "w") as file:
        file["x_test"] = np.random.default_rng(0).random((4, 6, 6, 3), "float32")
        file["y_test"] = np.arange(4)
    model = gauss_der_resnet((8, 8, 1), 3, [2, 2], 1.3, sigma0=[1.0, 1.4])
    model.save(tmp_path / "whole.keras")
    command = [sys.executable, "-m", __name__, tmp_path, "60"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [".h5", ".keras"]
    for line in lines:
        assert sum(map(int, re.findall(r": (\d+)", line))) == 60
        assert "Error" in line


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
