"""Memory of one prediction: `python -m tests.under_fire.memory SIDE`.

Prints by how many maps of the widest layer the process grew at its peak.
"""

import os
import re
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from keras_gdrn.models import scale_channel

WIDTH = 8


def peak() -> int:
    """In bytes, of this process: `getrusage` would tell that of its parent, if more."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def main(side: int) -> None:
    channel = scale_channel((None, None, 3), 10, [WIDTH, WIDTH], 1.5)
    channel(np.zeros((1, 8, 8, 3), "float32"))
    before = peak()
    images = np.random.default_rng(0).random((1, side, side, 3), "float32")
    assert np.isfinite(np.asarray(channel(images))).all()
    print((peak() - before) / (4 * WIDTH * side**2))


if __name__ == "__main__":
    main(int(sys.argv[1]))
