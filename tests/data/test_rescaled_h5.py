"""`rescaled_h5` on files of `write_h5`, on such as the authors', and on faulty ones."""

import re

import h5py
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import (
    _rescaled_h5,
    h5_report,
    read_h5,
    rescaled,
    rescaled_h5,
    write_h5,
)


def collected(data: tf.data.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """All images and labels of a data set of batches."""
    images, labels = zip(*data.as_numpy_iterator(), strict=True)
    return np.concatenate(images), np.concatenate(labels)


def write(path, **arrays):
    with h5py.File(path, "w") as file:
        for key, value in arrays.items():
            file[key] = value
    return path


def numbered(count, start=0):
    """Images that differ from each other, with their numbers as labels."""
    labels = np.arange(start, start + count)
    images = np.broadcast_to(labels[:, None, None, None] / 1000, (count, 4, 5, 1))
    return images.astype("float32"), labels


def folder_of(tmp_path, count, name="a_scte1p000.h5", **options):
    """A folder with a file of `count` numbered test images."""
    images, labels = numbered(count)
    with h5py.File(tmp_path / name, "w") as file:
        file.create_dataset("x_test", data=images, **options)
        file["y_test"] = labels
    return tmp_path


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 4 images, 4 blocks shuffled together."""
    monkeypatch.setattr(_rescaled_h5, "BLOCK", 4)
    monkeypatch.setattr(_rescaled_h5, "SHUFFLED", 16)


def assert_equal_elements(data, expected):
    images, labels = collected(data)
    expected_images, expected_labels = collected(expected)
    assert (images.dtype, labels.dtype) == ("float32", "int32")
    np.testing.assert_allclose(images, expected_images, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(labels, expected_labels)


@pytest.mark.parametrize(
    ("split", "factor"),
    [("train", 1.0), ("test", 0.5), ("test", 2**0.25), ("test", 2.0)],
)
@pytest.mark.parametrize("name", ["digits", "cifar10"])
def test_elements_equal_those_of_rescaled(name, split, factor, tmp_path, request):
    options = {}
    if name == "cifar10":
        data_dir = request.getfixturevalue("cifar10_dir")
        options = {"limit": 200, "data_dir": data_dir}
    for written in {("train", 1.0), (split, factor)}:
        write_h5(tmp_path, name, written[:1], written[1], **options)
    data = rescaled_h5(tmp_path, split, factor, batch_size=45)
    expected = rescaled(name, split, factor, batch_size=45, **options)
    assert data.element_spec == expected.element_spec
    assert int(data.cardinality()) == int(expected.cardinality())
    assert_equal_elements(data, expected)


def test_single_elements(tmp_path):
    data = rescaled_h5(folder_of(tmp_path, 100), "test")
    assert int(data.cardinality()) == 100
    assert data.element_spec[0].shape == (4, 5, 1)
    assert [int(label) for _, label in data] == list(range(100))


def test_its_end_waits_for_no_tuner(tmp_path):
    """As that of `rescaled`."""
    data = rescaled_h5(folder_of(tmp_path, 100), "test", batch_size=40)
    assert data.options().autotune.enabled is False


def test_batches_keep_the_remainder(tmp_path):
    data = rescaled_h5(folder_of(tmp_path, 150), "test", batch_size=40)
    assert int(data.cardinality()) == 4
    assert [len(labels) for _, labels in data] == [40, 40, 40, 30]


@pytest.mark.parametrize("shuffle", [False, True])
def test_training_then_validation(tmp_path, shuffle):
    (x_train, y_train), (x_val, y_val) = numbered(130), numbered(70, start=130)
    arrays = {"x_train": x_train, "y_train": y_train, "x_val": x_val, "y_val": y_val}
    write(tmp_path / "a_sctr1p000.h5", **arrays)
    options = {"batch_size": 45, "shuffle": shuffle}
    for split, labels in {
        "train": range(130),
        "validation": range(130, 200),
        "train+validation": range(200),
    }.items():
        _, found = collected(rescaled_h5(tmp_path, split, **options))
        assert (sorted(found) if shuffle else list(found)) == list(labels)
    data = rescaled_h5(tmp_path, "train+validation", limit=150, **options)
    assert sorted(collected(data)[1]) == list(range(150))


def test_without_validation_split_both_are_training(tmp_path):
    write_h5(tmp_path, "digits", ("train",), limit=70)
    data = rescaled_h5(tmp_path, "train+validation", batch_size=45)
    assert_equal_elements(
        data, rescaled("digits", "train+validation", batch_size=45, limit=70)
    )


def test_files_such_as_the_authors(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (9, 3, 6, 5), dtype="uint8")
    dummy = {"x_train": pixels[:1], "y_train": [0]}
    train = {"x_train": pixels, "y_train": np.eye(9), "x_test": pixels[:1]}
    write(tmp_path / "a_tr9_sctr1p000_scte1p000.h5", **train, y_test=[[0]])
    for name in ("0p841", "1p000"):
        test = {"x_test": pixels[::-1], "y_test": np.arange(9.0)[:, None]}
        write(tmp_path / f"a_te9_scte{name}.h5", **dummy, **test)
    expected = pixels.transpose(0, 2, 3, 1) / 255
    images, labels = collected(rescaled_h5(tmp_path, "train", batch_size=4))
    np.testing.assert_allclose(images, expected, atol=1e-6)
    np.testing.assert_array_equal(labels, range(9))
    for factor in (2**-0.25, 0.841, 1):
        images, labels = collected(rescaled_h5(tmp_path, "test", factor, batch_size=4))
        np.testing.assert_allclose(images, expected[::-1], atol=1e-6)
        np.testing.assert_array_equal(labels, range(9))


def test_size_factor_of_training_images(tmp_path):
    for factor in (1.0, 2.0):
        write_h5(tmp_path, "digits", ("train",), factor, limit=20)
    data = rescaled_h5(tmp_path, "train", 2.0, batch_size=45)
    assert_equal_elements(
        data, rescaled("digits", "train", 2.0, batch_size=20, limit=20)
    )


# Shuffling


def epochs(folder, count=3, **options):
    data = rescaled_h5(folder, "test", batch_size=10, shuffle=True, **options)
    return [collected(data)[1].tolist() for _ in range(count)]


def test_shuffle_follows_the_seed_and_differs_between_epochs(tmp_path, small_blocks):
    folder_of(tmp_path, 100)
    found = epochs(tmp_path, seed=1)
    for epoch in found:
        assert sorted(epoch) == list(range(100))
    assert len({tuple(epoch) for epoch in found}) == 3
    assert found == epochs(tmp_path, seed=1)
    assert found != epochs(tmp_path, seed=2)


def test_blocks_and_images_of_a_few_blocks_are_shuffled(tmp_path, small_blocks):
    folder_of(tmp_path, 100)
    for epoch in epochs(tmp_path):
        together = [{n // 4 for n in epoch[i : i + 16]} for i in range(0, 100, 16)]
        assert [len(blocks) for blocks in together] == [4] * 6 + [1]
        assert sorted(set().union(*together)) == list(range(25))
        assert together[0] != {0, 1, 2, 3}  # of blocks far apart
        assert len({n // 4 for n in epoch[:4]}) > 1  # not block after block
    first, second = epochs(tmp_path, count=2)
    assert {n // 4 for n in first[:16]} != {n // 4 for n in second[:16]}


def test_one_group_is_shuffled_anew_too(tmp_path):
    folder_of(tmp_path, 40)  # a single block
    first, second = epochs(tmp_path, count=2)
    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second != list(range(40)) != first


def test_epochs_are_skipped_by_a_first_element(tmp_path, small_blocks):
    folder_of(tmp_path, 100)
    data = rescaled_h5(tmp_path, "test", batch_size=10, shuffle=True, seed=3)
    for _ in range(2):
        next(iter(data))
    assert collected(data)[1].tolist() == epochs(tmp_path, seed=3)[2]


def test_shuffle_keeps_images_with_their_labels(tmp_path, small_blocks):
    folder_of(tmp_path, 50)
    data = rescaled_h5(tmp_path, "test", batch_size=7, shuffle=True, limit=45)
    images, labels = collected(data)
    assert sorted(labels) == list(range(45))
    np.testing.assert_allclose(images[:, 0, 0, 0], labels / 1000, atol=1e-6)


# Reading


@pytest.fixture
def reads(monkeypatch):
    """The numbers of images of each request to a file."""
    counts = []
    get = h5py.Dataset.__getitem__

    def counted(self, *arguments):
        found = get(self, *arguments)
        if np.ndim(found) == 4:
            counts.append(len(found))
        return found

    monkeypatch.setattr(h5py.Dataset, "__getitem__", counted)
    return counts


def test_images_are_read_in_blocks(tmp_path, reads):
    data = rescaled_h5(folder_of(tmp_path, 1000), "test", batch_size=45)
    assert reads == [64]
    collected(data)
    assert reads == [64] + 15 * [64] + [40]
    next(iter(data))
    assert len(reads) < 17 + 8  # not to the end


def test_chunks_are_read_whole(tmp_path, reads):
    folder = folder_of(tmp_path, 250, chunks=(50, 2, 5, 1), compression="gzip")
    images, labels = collected(rescaled_h5(folder, "test", batch_size=45, limit=220))
    assert reads == [100, 100, 100, 20]  # the first at once
    np.testing.assert_array_equal(labels, range(220))
    np.testing.assert_allclose(images[:, 0, 0, 0], labels / 1000, atol=1e-6)


def test_report_tells_what_is_there_without_images(tmp_path, reads):
    write_h5(tmp_path, "digits", ("test",), 2**-0.25, limit=30)
    write_h5(tmp_path, "digits", ("train",), limit=20)
    assert h5_report(tmp_path).splitlines() == [
        "digits_te30_outsize40-40_scte0p841.h5, size factor 0.8408964152537145",
        "  x_test: 30 images 40x40x1",
        "  y_test: classes 0 to 9",
        "digits_tr20_outsize40-40_sctr1p000.h5",
        "  x_train: 20 images 40x40x1",
        "  y_train: classes 0 to 9",
    ]
    assert not reads


def test_hidden_files_and_folders_are_skipped(tmp_path):
    folder_of(tmp_path, 3)
    (tmp_path / "._a_scte1p000.h5").write_bytes(b"of macOS")
    (tmp_path / "b_scte1p000.h5").mkdir()
    assert h5_report(tmp_path).startswith("a_scte1p000.h5")
    assert int(rescaled_h5(tmp_path, "test").cardinality()) == 3


def test_overshoot_is_clipped(tmp_path):
    images, labels = numbered(3)
    images[1], images[2] = -0.28, 1.28
    path = write(tmp_path / "a_scte1p000.h5", x_test=images, y_test=labels)
    found, _ = collected(rescaled_h5(tmp_path, "test", batch_size=3))
    np.testing.assert_array_equal(found[:, 0, 0, 0], [0, 0, 1])
    assert read_h5(path).splits["test"][0].max() == np.float32(1.28)


# Errors


def test_missing_size_factor_lists_what_is_there(tmp_path):
    for factor in (0.5, 2.0):
        write_h5(tmp_path, "digits", ("test",), factor, limit=10)
    with pytest.raises(FileNotFoundError) as error:
        rescaled_h5(tmp_path, "test", 2**0.5)
    assert "'test' at size factor 1.414" in str(error.value)
    assert re.findall(r"h5, size factor (.*)", str(error.value)) == ["0.5", "2.0"]
    folder_of(tmp_path, 10, name="unstated.h5")
    for factor in (1.0, 1e-4):
        with pytest.raises(FileNotFoundError, match="'test' at size factor"):
            rescaled_h5(tmp_path, "test", factor)
    with pytest.raises(FileNotFoundError, match="'train' at size factor 1"):
        rescaled_h5(tmp_path, "train+validation")


def test_two_files_for_one_are_an_error_that_names_both(tmp_path):
    for limit in (10, 20):
        write_h5(tmp_path, "digits", ("train",), limit=limit)
        write_h5(tmp_path, "digits", ("test",), 2.0, limit=limit)
    with pytest.raises(ValueError, match=r"'test' .*te10_.*scte2p0.*te20_.*scte2p0"):
        rescaled_h5(tmp_path, "test", 2.0)
    with pytest.raises(ValueError, match=r"'train' .*tr10_.*tr20_"):
        rescaled_h5(tmp_path, "train")


def test_shapes_of_training_and_validation_must_agree(tmp_path):
    train, validation = np.zeros((3, 4, 4, 1)), np.zeros((3, 3, 4, 1))
    arrays = {"x_train": train, "x_val": validation}
    write(tmp_path / "a.h5", **arrays, y_train=[0, 1, 2], y_val=[0, 1, 2])
    with pytest.raises(ValueError, match=r"one shape.*\(4, 4, 1\).*\(3, 4, 1\)"):
        rescaled_h5(tmp_path, "train+validation")


GOOD, CLASSES = np.zeros((3, 4, 4, 1), "float32"), [0, 1, 2]
BAD = GOOD + np.array([0, np.nan, 0], "float32")[:, None, None, None]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x_test": GOOD}, r"Expected .* Found: {'x_test': \(3, 4, 4, 1\)}"),
        ({"x_test": GOOD, "y_test": [0, 1]}, "3 images, y_test 2 labels"),
        ({"x_test": GOOD[0, 0], "y_test": CLASSES}, r"x_test .* \(4, 1\)"),
        ({"x_test": GOOD, "y_test": [0, 1, -1]}, r"y_test must number .* \[-1\]"),
        ({"x_test": BAD, "y_test": CLASSES}, r"x_test must be finite.* images \[1\]"),
        ({"x_test": GOOD + 255, "y_test": CLASSES}, r"x_test .*255.* images \[0 1 2\]"),
    ],
)
def test_faulty_files_are_an_error_at_once(tmp_path, arrays, message):
    write(tmp_path / "a_scte1p000.h5", **arrays)
    with pytest.raises(ValueError, match=rf"a_scte1p000\.h5: .*{message}"):
        rescaled_h5(tmp_path, "test")


def test_truncated_file_is_an_error_at_once(tmp_path):
    path = folder_of(tmp_path, 100) / "a_scte1p000.h5"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(OSError, match=r"a_scte1p000\.h5 cannot .*truncated file"):
        rescaled_h5(tmp_path, "test")


@pytest.mark.parametrize(("value", "found"), [(np.nan, "nan"), (255.0, r"255\.0")])
def test_faulty_values_are_an_error_where_they_are_reached(tmp_path, value, found):
    path = folder_of(tmp_path, 200) / "a_scte1p000.h5"
    with h5py.File(path, "r+") as file:
        file["x_test"][150, 2, 2, 0] = value
    elements = iter(rescaled_h5(tmp_path, "test", batch_size=64))
    next(elements)
    message = rf"a_scte1p000\.h5: x_test must be .* {found}.* images \[150\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(elements)


def test_file_that_vanishes_is_an_error_that_names_it(tmp_path):
    data = rescaled_h5(folder_of(tmp_path, 200), "test")
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
    folder_of(tmp_path, 10)
    with pytest.raises(ValueError, match=message):
        rescaled_h5(**{"folder": tmp_path, "split": "test"} | arguments)


@pytest.mark.parametrize(
    "function", [h5_report, lambda path: rescaled_h5(path, "test")]
)
@pytest.mark.parametrize("name", ["", "nothing"])
def test_folder_without_files_is_an_error(tmp_path, function, name):
    with pytest.raises(FileNotFoundError, match=r"`folder` .* folder='"):
        function(tmp_path / name)
