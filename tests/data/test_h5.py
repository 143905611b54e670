"""HDF5 files: the authors' layouts, our own, and what is refused."""

from unittest import mock

import h5py
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import (
    SIZE_FACTORS,
    h5_report,
    read_h5,
    rescaled,
    rescaled_arrays,
    rescaled_h5,
    write_h5,
)
from tests.data.h5_layouts import write, write_folder
from tests.data.test_pipelines import assert_same, collected

GOOD, CLASSES = np.zeros((3, 4, 4, 1), "float32"), [0, 1, 2]


def numbered(folder, count=100, **options):
    """A folder with a file of test images that differ, with their numbers as labels."""
    images = (
        np.ones((count, 4, 5, 1), "float32") * np.arange(count)[:, None, None, None]
    )
    with h5py.File(folder / "a_scte1p000.h5", "w") as file:
        file.create_dataset("x_test", data=images / 1000, **options)
        file["y_test"] = np.arange(count)
    return folder


# What we write


def test_what_is_written_is_read_at_every_size_factor_in_the_same_order(tmp_path):
    (tmp_path / "._a_scte1p000.h5").write_bytes(b"of macOS")  # skipped, as it is hidden
    options = {"batch_size": 200, "shuffle": True, "seed": 3}
    for factor in SIZE_FACTORS:
        path = write_h5(tmp_path, "digits", ("test",), factor, limit=300)
    for factor in SIZE_FACTORS:
        data = rescaled("digits", "test", factor, limit=300, **options)
        found = rescaled_h5(tmp_path, "test", factor, **options)
        assert_same(collected(found), collected(data))
    arrays = rescaled_arrays("digits", "test", 2.0, limit=300)
    assert_same(read_h5(path)["test"], arrays)
    report = (
        "digits_te300_outsize40-40_scte2p000.h5, size factor 2.000\n"
        "  x_test: 300 images 40x40x1, classes 0 to 9"
    )
    assert h5_report(path) == report
    assert h5_report(tmp_path).endswith(f"\n{report}")


def test_several_splits_of_one_canvas_in_one_file(tmp_path, cifar10_dir):
    options = {"limit": 300, "data_dir": cifar10_dir}
    path = write_h5(tmp_path, "cifar10", ("train", "validation"), **options)
    assert path.name == "cifar10_tr300_vl300_outsize64-64_sctr1p000.h5"
    splits = read_h5(path)
    assert list(splits) == ["train", "validation"]
    for split, found in splits.items():
        assert_same(found, rescaled_arrays("cifar10", split, **options))
    message = r"`splits` .* one canvas.*Received: \('train', 'test'\) of stl10.*192"
    with pytest.raises(ValueError, match=message):
        write_h5(tmp_path, "stl10", ("train", "test"))


def test_a_file_is_complete_and_stays_as_it_is(tmp_path):
    stop = mock.patch("h5py.File.create_dataset", side_effect=KeyboardInterrupt)
    with stop, pytest.raises(KeyboardInterrupt):
        write_h5(tmp_path, "digits", ("test",), limit=5)
    assert not list(tmp_path.glob("*.h5"))
    path = write_h5(tmp_path, "digits", ("test",), limit=5)
    assert list(read_h5(path)) == ["test"]
    path.write_bytes(b"mine")
    assert write_h5(tmp_path, "digits", ("test",), limit=5) == path
    assert path.read_bytes() == b"mine"


# What is read


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
    write_folder(tmp_path, (0.5, 1.0, 2**0.25), **options)
    for factor in (0.5, 1.0, 2**0.25):
        expected = rescaled_arrays("digits", "test", factor, limit=30)
        data = rescaled_h5(tmp_path, "test", round(factor, 3), batch_size=25)
        assert_same(collected(data), expected, tolerance)
    both = rescaled_h5(tmp_path, "train+validation", batch_size=25)
    _, labels = rescaled_arrays("digits", "train", limit=40)
    np.testing.assert_array_equal(collected(both)[1], [*labels, *labels[:12]])
    report = h5_report(tmp_path)
    assert report.count("images 40x40x1") == 2 * 3 + 3  # no placeholder
    assert report.count("not read, but the file of this test set alone") == 1
    assert ("up to 255, divided by it" in report) is (white == 255)
    # Without it, that beside training images.
    (tmp_path / "digits_te30_outsize40-40_scte1p000.h5").unlink()
    expected = rescaled_arrays("digits", "test", limit=20)
    assert_same(collected(rescaled_h5(tmp_path, "test")), expected, tolerance)


def test_the_middle_of_the_images(tmp_path):
    write_h5(tmp_path, "digits", ("test",), limit=30)
    data = rescaled_h5(tmp_path, "test", canvas=(24, 20), batch_size=30)
    expected = rescaled_arrays("digits", "test", canvas=(24, 20), limit=30)
    assert_same(collected(data), expected)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (1, 4, 5, 1)},
        {"chunks": (50, 2, 5, 1), "compression": "gzip", "shuffle": True},
    ],
)
def test_shuffled_images_however_they_are_stored(tmp_path, options):
    folder = numbered(tmp_path, **options)
    data = rescaled_h5(folder, "test", batch_size=7, shuffle=True, limit=90)
    images, labels = collected(data)
    assert sorted(labels) == list(range(90)) != list(labels)
    np.testing.assert_allclose(images[:, 0, 0, 0], labels / 1000, atol=1e-6)


def test_what_the_cubic_overshoots_is_clipped_and_integers_are_of_255(tmp_path):
    images = GOOD + np.array([0.5, -0.28, 1.28])[:, None, None, None]
    write(tmp_path / "a_scte1p000.h5", x_test=images, y_test=CLASSES)
    found, _ = read_h5(tmp_path / "a_scte1p000.h5")["test"]
    np.testing.assert_array_equal(found[:, 0, 0, 0], [0.5, 0, 1])
    dark = write(tmp_path / "b.h5", x_test=GOOD.astype(int) + 1, y_test=CLASSES)
    assert read_h5(dark)["test"][0].max() == np.float32(1 / 255)


def test_other_files_are_other_data(tmp_path):
    def identity(name, limit=None, **options):
        (tmp_path / name).mkdir()
        folder = numbered(tmp_path / name, 9, **options)
        return rescaled_h5(folder, "test", limit=limit).source.identity()

    assert identity("a") == identity("b")
    assert identity("chunks", chunks=(1, 4, 5, 1)) != identity("c")
    assert identity("limited", limit=4) != identity("d")


# Errors

TEST = {"x_test": GOOD, "y_test": CLASSES}
TRAIN = {"x_train": GOOD, "x_val": GOOD[:, 1:], "y_train": CLASSES, "y_val": CLASSES}
OTHER = r"'test' at size factor 1[^!]*a_scte0p500\.h5, size factor 0\.500\n  x_test"


@pytest.mark.parametrize(
    ("names", "arrays", "split", "error", "message"),
    [
        ("", {}, "test", FileNotFoundError, "`folder` must .* Received: folder='.+'"),
        ("a_scte0p500", TEST, "test", FileNotFoundError, OTHER),
        ("a", TEST, "train+validation", FileNotFoundError, "'train' at size factor 1"),
        ("a_scte1p000 b_scte1p000", TEST, "test", ValueError, "'test' .*a_.*b_"),
        ("a b_sctr1p000", TRAIN, "train", ValueError, r"a\.h5.*b_sctr1p000\.h5"),
        ("a", TRAIN, "train+validation", ValueError, r"one.*\(4, 4, 1\).*\(3, 4, 1\)"),
    ],
)
def test_folders_without_what_is_asked_for(
    tmp_path, names, arrays, split, error, message
):
    for name in names.split():
        write(tmp_path / f"{name}.h5", **arrays)
    with pytest.raises(error, match=message):
        rescaled_h5(tmp_path, split)


BAD = GOOD + np.array([np.nan, 0, 0], "float32")[:, None, None, None]
LABELS = "y_test must be a number for each of .*x_test"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y_test": CLASSES}, r"must have x_train.* Found: \['y_test'\]"),
        ({"x_test": GOOD[0, 0], "y_test": CLASSES}, r"x_test must be .* \(4, 1\)"),
        ({"x_test": GOOD[..., [0, 0]], "y_test": CLASSES}, r"x_test .* \(3, 4, 4, 2\)"),
        ({"x_test": np.full(GOOD.shape, b"a"), "y_test": CLASSES}, "must be numbers"),
        ({"x_test": GOOD, "y_test": [0, 1]}, LABELS),
        ({"x_test": GOOD, "y_test": np.eye(3)}, LABELS),
        ({"x_test": GOOD, "y_test": [b"a"] * 3}, LABELS),
        ({"x_test": GOOD, "y_test": [0, 1, -1]}, r"y_test must number .* \[-1\]"),
        ({"x_test": GOOD, "y_test": [0, 0.5, np.nan]}, r"y_test .* \[0\.5 nan\]"),
        ({"x_test": BAD, "y_test": CLASSES}, r"x_test must be .* nan to nan"),
        ({"x_test": GOOD - 1, "y_test": CLASSES}, r"x_test .* 1\. .*-1 to -1"),
        ({"x_test": GOOD + 999, "y_test": CLASSES}, r"x_test .* 255\. .*999 to 999"),
    ],
)
def test_faulty_files_are_an_error_at_once(tmp_path, arrays, message):
    path = write(tmp_path / "a_scte1p000.h5", **arrays)
    for read in (lambda: read_h5(path), lambda: rescaled_h5(tmp_path, "test")):
        with pytest.raises(ValueError, match=rf"a_scte1p000\.h5: .*{message}"):
            read()


@pytest.mark.parametrize("value", [np.nan, 255.0])
def test_faulty_values_are_an_error_where_they_are_reached(tmp_path, value):
    with h5py.File(numbered(tmp_path, 200) / "a_scte1p000.h5", "r+") as file:
        file["x_test"][150, 2, 2, 0] = value
    elements = iter(rescaled_h5(tmp_path, "test", batch_size=64))
    next(elements)
    message = rf"a_scte1p000\.h5: x_test must be .* to {value:g}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(elements)


def test_truncated_and_vanished_files_are_errors_that_name_them(tmp_path):
    data = rescaled_h5(numbered(tmp_path), "test")
    path = tmp_path / "a_scte1p000.h5"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(OSError, match=r"a_scte1p000\.h5: .*truncated file"):
        rescaled_h5(tmp_path, "test")
    path.unlink()
    with pytest.raises(tf.errors.OpError, match=r"a_scte1p000\.h5"):
        next(iter(data))
    for read in (read_h5, h5_report):
        with pytest.raises(FileNotFoundError, match=r"a_scte1p000\.h5"):
            read(path)
