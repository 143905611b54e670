"""Reads files with random damage: `python -m tests.under_fire.fuzz FOLDER COUNT SEED`.

In a process of its own, so that the test sees a crash. Prints how each file was met:
`read`, or the kind of error.
"""

import collections
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from keras_gdrn.data import read_h5

# What `read_h5` promises. Keras, whose loader it is, promises nothing: any exception.
ERRORS = {".h5": (OSError, ValueError), ".keras": (Exception,)}


def damaged(whole: bytes, random: np.random.Generator) -> bytes:
    """A file that is cut off, or in which some bytes or a whole run have changed."""
    kind, content = random.integers(3), bytearray(whole)
    if kind == 0:
        return whole[: random.integers(len(whole))]
    count = int(random.integers(1, 20)) if kind == 1 else int(random.integers(1, 2000))
    if kind == 1:
        places = random.integers(len(whole), size=count)
    else:
        first = int(random.integers(max(1, len(whole) - count)))
        places = range(first, min(len(whole), first + count))
    for place in places:
        content[place] = random.integers(256)
    return bytes(content)


def read(path: Path) -> None:
    if path.suffix == ".keras":
        keras.saving.load_model(path, safe_mode=True)
        return
    read_h5(path)


def main(folder: Path, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    warnings.simplefilter("ignore")
    for original in sorted(folder.glob("whole.*")):
        whole, met = original.read_bytes(), collections.Counter()
        path = original.with_stem("damaged")
        for _ in range(count):
            path.write_bytes(damaged(whole, random))
            try:
                read(path)
                met["read"] += 1
            except ERRORS[original.suffix] as error:
                met[type(error).__name__] += 1
        print(original.suffix, dict(met))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
