"""A damaged file gets an error, or is read where the damage does not matter."""

import h5py
import keras
import numpy as np
import pytest

from keras_gdrn.data import read_h5
from keras_gdrn.models import gauss_der_resnet


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


# What `read_h5` promises. Keras, whose loader it is, promises nothing: any exception.
@pytest.mark.seen_on_tensorflow("files do not depend on it")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("suffix", "read", "errors"),
    [
        (".h5", read_h5, (OSError, ValueError)),
        (".keras", keras.saving.load_model, Exception),
    ],
)
def test_no_damage_crashes_or_hangs_the_reader(suffix, read, errors, tmp_path):
    """Which would end the tests, or never end them."""
    path, random, met = tmp_path / f"file{suffix}", np.random.default_rng(0), []
    if suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["x_test"] = random.random((4, 6, 6, 3), "float32")
            file["y_test"] = np.arange(4)
    else:
        gauss_der_resnet((8, 8, 1), 3, [2, 2], 1.3, sigma0=[1.0, 1.4]).save(path)
    whole = path.read_bytes()
    for _ in range(60):
        path.write_bytes(damaged(whole, random))
        try:
            read(path)
        except errors as error:
            met.append(error)
    assert met
