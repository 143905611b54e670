"""HDF5 files: the authors' layouts, and what is refused."""

import numpy as np
import pytest

from keras_gdrn.data import read_h5, rescaled_arrays
from tests.data.h5_layouts import write, write_folder
from tests.data.test_pipelines import assert_same

GOOD, CLASSES = np.zeros((3, 4, 4, 1), "float32"), [0, 1, 2]


@pytest.mark.parametrize(
    ("dtype", "white", "batch_axis", "tolerance"),
    [
        ("float32", 1, True, 1e-6),
        ("float32", 255, False, 1e-6),
        ("uint8", 255, None, 0.6 / 255),
        ("uint8", 255, True, 0.6 / 255),
    ],
)
def test_files_such_as_the_authors(tmp_path, dtype, white, batch_axis, tolerance):
    options = {"dtype": dtype, "white": white, "batch_axis": batch_axis}
    write_folder(tmp_path, (0.5,), **options)
    alone = read_h5(tmp_path / "digits_te30_outsize40-40_sctr0p500_scte0p500.h5")
    assert list(alone) == ["test"]  # no placeholder
    expected = rescaled_arrays("digits", "test", 0.5, limit=30)
    assert_same(alone["test"], expected, tolerance)
    mixed = read_h5(
        tmp_path / "digits_tr40_vl12_te20_outsize40-40_sctr1p000_scte1p000.h5", limit=30
    )
    assert list(mixed) == ["train", "validation", "test"]
    for found, split, count in zip(
        mixed.values(), ("train", "train", "test"), (30, 12, 20), strict=True
    ):
        assert_same(found, rescaled_arrays("digits", split, limit=count), tolerance)


def test_what_the_cubic_overshoots_is_clipped(tmp_path):
    images = GOOD + np.array([0.5, -0.28, 1.28])[:, None, None, None]
    found, _ = read_h5(write(tmp_path / "a.h5", x_test=images, y_test=CLASSES))["test"]
    np.testing.assert_array_equal(found[:, 0, 0, 0], [0.5, 0, 1])


BAD = GOOD + np.array([np.nan, 0, 0], "float32")[:, None, None, None]
LABELS = "y_test must be a number for each of .*x_test"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y_test": CLASSES}, r"must have x_train.* Received: \['y_test'\]"),
        ({"x_test": GOOD[0, 0], "y_test": CLASSES}, r"x_test must be .* \(4, 1\)"),
        (
            {"x_test": GOOD[..., 4 * [0]], "y_test": CLASSES},
            r"x_test .* \(3, 4, 4, 4\)",
        ),
        ({"x_test": np.full(GOOD.shape, b"a"), "y_test": CLASSES}, "must be numbers"),
        ({"x_test": GOOD, "y_test": [0, 1]}, LABELS),
        ({"x_test": GOOD, "y_test": np.eye(3)[:, 1:]}, LABELS),
        ({"x_test": GOOD, "y_test": [b"a"] * 3}, LABELS),
        ({"x_test": GOOD, "y_test": [0, 1, -1]}, r"y_test must be class n.* \[-1\]"),
        ({"x_test": GOOD, "y_test": [0, 0.5, np.nan]}, r"y_test .* \[0\.5 nan\]"),
        ({"x_test": BAD, "y_test": CLASSES}, "x_test: values must be .* nan to nan"),
        ({"x_test": GOOD - 1, "y_test": CLASSES}, "x_test: .* from -1 to 0"),
        ({"x_test": GOOD + 400, "y_test": CLASSES}, "x_test: .* from 0 to 400"),
    ],
)
def test_faulty_files_are_an_error_at_once(tmp_path, arrays, message):
    path = write(tmp_path / "a_scte1p000.h5", **arrays)
    with pytest.raises(ValueError, match=rf"a_scte1p000\.h5: .*{message}"):
        read_h5(path)


def test_truncated_and_missing_files_are_errors_that_name_them(tmp_path):
    path = write(tmp_path / "a.h5", x_test=np.zeros((100, 4, 4, 1)), y_test=[0] * 100)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(OSError, match=r"a\.h5: .*truncated file"):
        read_h5(path)
    with pytest.raises(FileNotFoundError, match=r"b\.h5"):
        read_h5(tmp_path / "b.h5")


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


@pytest.mark.filterwarnings("ignore")
def test_no_damage_crashes_or_hangs_the_reader(tmp_path):
    """Which would end the tests, or never end them: an error, or harmless damage."""
    random, refused = np.random.default_rng(0), 0
    images = random.random((4, 6, 6, 3), "float32")
    path = write(tmp_path / "a.h5", x_test=images, y_test=np.arange(4))
    whole = path.read_bytes()
    for _ in range(60):
        path.write_bytes(damaged(whole, random))
        try:
            read_h5(path)
        except (OSError, ValueError):
            refused += 1
    assert 0 < refused < 60
