"""HDF5 files: the authors' layouts, our own, and what is refused."""

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

GOOD, CLASSES = np.zeros((3, 4, 4, 1), "float32"), [0, 1, 2]


def collected(data: tf.data.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """All images and labels of a data set of batches."""
    images, labels = zip(*data.as_numpy_iterator(), strict=True)
    return np.concatenate(images), np.concatenate(labels)


def numbered(folder, count=100, **options):
    """A folder with a file of test images that differ, with their numbers as labels."""
    labels = np.arange(count)
    images = np.broadcast_to(labels[:, None, None, None] / 1000, (count, 4, 5, 1))
    with h5py.File(folder / "a_scte1p000.h5", "w") as file:
        file.create_dataset("x_test", data=images.astype("float32"), **options)
        file["y_test"] = labels
    return folder


# What we write


@pytest.mark.parametrize("factor", SIZE_FACTORS)
def test_round_trip_at_every_size_factor(tmp_path, factor):
    path = write_h5(tmp_path, "digits", ("test",), factor)
    assert h5_report(path).startswith(f"{path.name}, size factor {factor}\n")
    expected = rescaled_arrays("digits", "test", factor)
    for found, wanted in zip(read_h5(path)["test"], expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        assert found.dtype == wanted.dtype


def test_several_splits_in_one_file(tmp_path, cifar10_dir):
    options = {"limit": 300, "data_dir": cifar10_dir}
    path = write_h5(tmp_path, "cifar10", ("train", "validation"), **options)
    assert path.name == "cifar10_tr300_vl300_outsize64-64_sctr1p000.h5"
    splits = read_h5(path)
    assert list(splits) == ["train", "validation"]
    for split, found in splits.items():
        expected = rescaled_arrays("cifar10", split, **options)
        np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
        np.testing.assert_array_equal(found[1], expected[1])


def test_complete_file_is_left_as_it_is(tmp_path):
    path = write_h5(tmp_path, "digits", ("test",), limit=5)
    path.write_bytes(b"mine")
    assert write_h5(tmp_path, "digits", ("test",), limit=5) == path
    assert path.read_bytes() == b"mine"


def test_interrupted_file_does_not_have_the_name(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(h5py.File, "create_dataset", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_h5(tmp_path, "digits", ("test",), limit=10)
    assert not list(tmp_path.glob("*.h5"))
    monkeypatch.undo()
    assert len(read_h5(write_h5(tmp_path, "digits", ("test",), limit=10))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits", ()), "`splits` must be some of"),
        (("digits", "test"), "`splits` .* splits='test'"),
        (("digits", ("valid",)), "`splits` .*valid"),
        (("stl10", ("train", "test")), "192 pixels, others of 96"),
        (("digits", ("test",), 0), "`factor` .*0"),
    ],
)
def test_what_cannot_be_written(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_h5(tmp_path, *arguments)
    assert not list(tmp_path.iterdir())


# What is read


@pytest.mark.parametrize("batch_axis", [True, False])
@pytest.mark.parametrize(
    ("dtype", "white", "tolerance"),
    [("float32", 1, 1e-6), ("float32", 255, 1e-6), ("uint8", 255, 0.6 / 255)],
)
def test_files_such_as_the_authors(tmp_path, dtype, white, tolerance, batch_axis):
    options = {"dtype": dtype, "white": white, "batch_axis": batch_axis}
    write_folder(tmp_path, (0.5, 1.0, 2**0.25), **options)
    for factor in (0.5, 1.0, 2**0.25):
        expected = rescaled_arrays("digits", "test", factor, limit=30)
        data = rescaled_h5(tmp_path, "test", round(factor, 3), batch_size=25)
        images, labels = collected(data)
        np.testing.assert_allclose(images, expected[0], rtol=0, atol=tolerance)
        np.testing.assert_array_equal(labels, expected[1])
    both = rescaled_h5(tmp_path, "train+validation", batch_size=25)
    _, labels = rescaled_arrays("digits", "train", limit=40)
    np.testing.assert_array_equal(collected(both)[1], [*labels, *labels[:12]])
    report = h5_report(tmp_path)
    assert report.count("one image, a placeholder, left out") == 6
    assert report.count("read, but the file of this test set alone") == 1
    assert (f"{dtype} to 255, divided by it" in report) is (white == 255)


def test_a_test_set_beside_training_images_is_read_where_it_has_no_other(tmp_path):
    write_folder(tmp_path, (2.0,))
    _, labels = collected(rescaled_h5(tmp_path, "test", batch_size=25))
    np.testing.assert_array_equal(
        labels, rescaled_arrays("digits", "test", limit=20)[1]
    )


@pytest.mark.parametrize("shuffle", [False, True])
def test_elements_and_their_order_are_those_of_rescaled(tmp_path, shuffle):
    write_h5(tmp_path, "digits", ("train",))
    options = {"batch_size": 45, "shuffle": shuffle, "seed": 3, "limit": 100}
    data = rescaled_h5(tmp_path, "train", **options)
    expected = rescaled("digits", "train", **options)
    assert data.element_spec == expected.element_spec
    assert int(data.cardinality()) == int(expected.cardinality()) == 3
    for _ in range(2):  # another order each time
        for found, wanted in zip(collected(data), collected(expected), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_the_middle_of_the_images(tmp_path):
    write_h5(tmp_path, "digits", ("test",), limit=30)
    data = rescaled_h5(tmp_path, "test", canvas=(24, 20), batch_size=30)
    images, _ = rescaled_arrays("digits", "test", canvas=(24, 20), limit=30)
    np.testing.assert_allclose(collected(data)[0], images, atol=1e-6)
    message = r"`canvas` must be within the 40x40 pixels .*canvas=\(24, 41\)"
    with pytest.raises(ValueError, match=message):
        rescaled_h5(tmp_path, "test", canvas=(24, 41))


def test_single_elements(tmp_path):
    data = rescaled_h5(numbered(tmp_path), "test")
    assert int(data.cardinality()) == 100
    assert data.element_spec[0].shape == (4, 5, 1)
    assert [int(label) for _, label in data] == list(range(100))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (1, 4, 5, 1)},
        {"chunks": (50, 2, 5, 1), "compression": "gzip", "shuffle": True},
        {"chunks": (7, 3, 3, 1), "compression": "lzf", "fletcher32": True},
    ],
)
def test_shuffled_images_however_they_are_stored(tmp_path, options):
    data = rescaled_h5(
        numbered(tmp_path, **options), "test", batch_size=7, shuffle=True, limit=90
    )
    images, labels = collected(data)
    assert sorted(labels) == list(range(90)) != list(labels)
    np.testing.assert_allclose(images[:, 0, 0, 0], labels / 1000, atol=1e-6)


def test_what_the_cubic_overshoots_is_clipped(tmp_path):
    images = GOOD + np.array([0.5, -0.28, 1.28])[:, None, None, None]
    write(tmp_path / "a_scte1p000.h5", x_test=images, y_test=CLASSES)
    found, _ = read_h5(tmp_path / "a_scte1p000.h5")["test"]
    np.testing.assert_array_equal(found[:, 0, 0, 0], [0.5, 0, 1])


def test_hidden_files_and_folders_are_skipped(tmp_path):
    numbered(tmp_path, 3)
    (tmp_path / "._a_scte1p000.h5").write_bytes(b"of macOS")
    (tmp_path / "b_scte1p000.h5").mkdir()
    assert h5_report(tmp_path) == h5_report(tmp_path / "a_scte1p000.h5")
    assert int(rescaled_h5(tmp_path, "test").cardinality()) == 3


# Errors


def test_missing_size_factor_lists_what_is_there(tmp_path):
    write_h5(tmp_path, "digits", ("test",), 0.5, limit=10)
    message = r"'test' at size factor 1.414[^!]*h5, size factor 0.5"
    with pytest.raises(FileNotFoundError, match=message):
        rescaled_h5(tmp_path, "test", 2**0.5)
    with pytest.raises(FileNotFoundError, match="'train' at size factor 1"):
        rescaled_h5(tmp_path, "train+validation")


def test_two_files_for_one_are_an_error_that_names_both(tmp_path):
    for limit in (10, 20):
        write_h5(tmp_path, "digits", ("test",), 2.0, limit=limit)
    with pytest.raises(ValueError, match=r"'test' .*te10_.*scte2p0.*te20_.*scte2p0"):
        rescaled_h5(tmp_path, "test", 2.0)
    write(tmp_path / "a.h5", x_train=GOOD, y_train=CLASSES)
    arrays = {"x_val": GOOD, "y_val": CLASSES, "x_train": GOOD, "y_train": CLASSES}
    write(tmp_path / "b_sctr1p000.h5", **arrays)
    with pytest.raises(ValueError, match=r"'train' .*a\.h5.*b_sctr1p000\.h5"):
        rescaled_h5(tmp_path, "train")


def test_shapes_of_training_and_validation_must_agree(tmp_path):
    arrays = {"x_train": GOOD, "x_val": GOOD[:, 1:], "y_train": CLASSES}
    write(tmp_path / "a.h5", **arrays, y_val=CLASSES)
    with pytest.raises(ValueError, match=r"one shape.*\(4, 4, 1\).*\(3, 4, 1\)"):
        rescaled_h5(tmp_path, "train+validation")


def lies_elsewhere(file):
    with h5py.File(file.filename + "x", "w") as other:
        other["x"] = GOOD
    return file.filename + "x"


def external_link(file):
    file["x_test"] = h5py.ExternalLink(lies_elsewhere(file), "/x")


def virtual_dataset(file):
    layout = h5py.VirtualLayout(GOOD.shape, "float32")
    layout[:] = h5py.VirtualSource(lies_elsewhere(file), "x", GOOD.shape)
    file.create_virtual_dataset("x_test", layout)


def external_storage(file):
    elsewhere = [(lies_elsewhere(file), 0, 48)]
    file.create_dataset("x_test", GOOD.shape, "uint8", external=elsewhere)


def never_written(file):
    file.create_dataset("x_test", (3, 9000, 9000, 1), "float32")


def one_chunk_not_written(file):
    options = {"chunks": (1, 4, 4, 1), "compression": "gzip"}
    file.create_dataset("x_test", GOOD.shape, "float32", **options)[:2] = 1.0


def text(file):
    file["x_test"] = np.full(GOOD.shape, b"a")


def group(file):
    file.create_group("x_test")


@pytest.mark.parametrize(
    "stored",
    [
        *(external_link, virtual_dataset, external_storage, never_written),
        *(one_chunk_not_written, text, group),
    ],
)
def test_what_is_not_stored_in_the_file_as_numbers(tmp_path, stored):
    with h5py.File(tmp_path / "a_scte1p000.h5", "w") as file:
        stored(file)
        file["y_test"] = CLASSES
    message = r"a_scte1p000\.h5: x_test must be an array of numbers, stored in this"
    for read in (h5_report, lambda folder: rescaled_h5(folder, "test")):
        with pytest.raises(ValueError, match=message):
            read(tmp_path)


BAD = GOOD + np.array([0, np.nan, 0], "float32")[:, None, None, None]
LABELS = r"y_test must be \(N,\) or \(N, 1\), for 3 images"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x_test": GOOD}, r"Expected x_train .* Found: \['x_test'\]"),
        ({"x_test": GOOD[0, 0], "y_test": CLASSES}, r"x_test must be .* \(4, 1\)"),
        ({"x_test": GOOD[..., [0, 0]], "y_test": CLASSES}, r"x_test .* \(3, 4, 4, 2\)"),
        ({"x_test": GOOD, "y_test": [0, 1]}, LABELS),
        ({"x_test": GOOD, "y_test": np.eye(3)}, LABELS),
        ({"x_test": GOOD, "y_test": [0, 1, -1]}, r"y_test must number .* \[-1\]"),
        ({"x_test": GOOD, "y_test": [0, 0.5, np.nan]}, r"y_test .* \[0\.5 nan\]"),
        ({"x_test": BAD, "y_test": CLASSES}, r"x_test must be finite.* images \[1\]"),
        ({"x_test": GOOD - 1, "y_test": CLASSES}, r"x_test .*-1 to -1.* \[0 1 2\]"),
        ({"x_test": GOOD + 999, "y_test": CLASSES}, r"x_test .*255.*999.* \[0 1 2\]"),
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
    message = rf"a_scte1p000\.h5: x_test must be .* {value:g}.* images \[150\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(elements)


def test_truncated_file_is_an_error_at_once(tmp_path):
    path = numbered(tmp_path) / "a_scte1p000.h5"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(OSError, match=r"a_scte1p000\.h5 cannot .*truncated file"):
        rescaled_h5(tmp_path, "test")


def test_file_that_vanishes_is_an_error_that_names_it(tmp_path):
    data = rescaled_h5(numbered(tmp_path), "test")
    (tmp_path / "a_scte1p000.h5").unlink()
    with pytest.raises(tf.errors.OpError, match=r"a_scte1p000\.h5 cannot be read"):
        next(iter(data))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "valid"}, "`split` .* split='valid'"),
        ({"factor": 0.0}, r"`factor` .* factor=0\.0"),
        ({"batch_size": 0}, "`batch_size` .* batch_size=0"),
        ({"limit": 2.5}, r"`limit` .* limit=2\.5"),
    ],
)
def test_errors_name_the_argument_and_the_value(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        rescaled_h5(**{"folder": numbered(tmp_path), "split": "test"} | arguments)


def test_nothing_there_is_an_error(tmp_path):
    for read, argument in (
        *((read_h5, "path"), (h5_report, "folder")),
        (lambda folder: rescaled_h5(folder, "test"), "folder"),
    ):
        with pytest.raises(FileNotFoundError, match=rf"`{argument}` .*nothing"):
            read(tmp_path / "nothing")
