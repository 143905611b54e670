"""A damaged file gets an error, or is read where the damage does not matter."""

import h5py
import numpy as np
import pytest

from keras_gdrn.data import read_h5


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


@pytest.mark.seen_on_tensorflow("files do not depend on it")
@pytest.mark.filterwarnings("ignore")
def test_no_damage_crashes_or_hangs_the_reader(tmp_path):
    """Which would end the tests, or never end them."""
    path, random, refused = tmp_path / "file.h5", np.random.default_rng(0), 0
    with h5py.File(path, "w") as file:
        file["x_test"] = random.random((4, 6, 6, 3), "float32")
        file["y_test"] = np.arange(4)
    whole = path.read_bytes()
    for _ in range(60):
        path.write_bytes(damaged(whole, random))
        try:
            read_h5(path)
        except (OSError, ValueError):
            refused += 1
    assert 0 < refused < 60
