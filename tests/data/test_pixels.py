"""One rule for what the values of an image mean, whatever takes the image."""

import h5py
import numpy as np
import pytest
from keras import ops

from keras_gdrn.data import read_h5, read_image
from keras_gdrn.models import Preprocess

RAMP = np.linspace(0, 1, 24).reshape(1, 6, 4, 1)
CASES = {
    "shares": RAMP,
    "bytes": np.rint(255 * RAMP),
    "resized shares": 1.25 * RAMP - 0.1,
    "resized bytes": 255 * (1.25 * RAMP - 0.1) + 0.1,
    "a mask": RAMP > 0.4,
    "a dark photograph": np.rint(6 * RAMP),
}
NEITHER = {
    "of -1 to 1": 2 * RAMP - 1,
    "standardized": 4 * RAMP - 2,
    "beyond white": np.rint(300 * RAMP),
    "no number": RAMP + np.nan,
}
DTYPES = ("bool", "uint8", "int64", "uint16", "float16", "float32", "float64")


def as_layer(images, _):
    return ops.convert_to_numpy(Preprocess()(images))[0]


def as_photo(images, _):
    return read_image(images[0], channels=1) / 255


def as_file(images, folder):
    with h5py.File(folder / "images.h5", "w") as file:
        file["x_test"], file["y_test"] = np.concatenate([images, images]), [0, 1]
    return read_h5(folder / "images.h5")["test"][0][0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_all_read_the_same(tmp_path, case, dtype):
    images = CASES[case].astype(dtype)
    if not np.allclose(images.astype(float), CASES[case], atol=0.1):
        pytest.skip("the dtype has no such values")
    white = 255 if CASES[case].max() > 2 else 1
    expected = np.clip(images[0].astype("float64") / white, 0, 1)
    for reader in (as_layer, as_photo, as_file):
        found = np.clip(reader(images, tmp_path), 0, 1)
        np.testing.assert_allclose(found, expected, atol=0.5 / 255 + 1e-6)


@pytest.mark.parametrize("case", NEITHER)
def test_what_is_neither_is_never_read_in_silence(tmp_path, case):
    images = NEITHER[case]
    assert np.isnan(as_layer(images, None)).all()
    for reader in (as_photo, as_file):
        with pytest.raises(ValueError, match=r"from 0 to 1 or from 0 to 255\. Rec"):
            reader(images, tmp_path)
