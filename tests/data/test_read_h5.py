"""`read_h5` on files such as the authors' are expected to be, and on others."""

import h5py
import numpy as np
import pytest

from keras_gdrn.data import read_h5


def write(path, **arrays):
    with h5py.File(path, "w") as file:
        for key, value in arrays.items():
            file[key] = value
    return path


def images(count, shape=(6, 6, 3)):
    return np.random.default_rng(0).random((count, *shape)).astype("float32")


def test_expected_file(tmp_path):
    arrays = {"x_train": images(5), "y_train": np.arange(5.0)[:, None]}
    arrays |= {"x_val": images(3), "y_val": np.arange(3)}
    arrays |= {"x_test": images(4), "y_test": np.arange(4)[:, None]}
    file = read_h5(write(tmp_path / "cifar10_tr5.h5", **arrays))
    assert file.factor is None
    assert [len(labels) for _, labels in file.splits.values()] == [5, 3, 4]
    assert list(file.splits) == ["train", "validation", "test"]
    pixels, labels = file.splits["train"]
    assert (pixels.dtype, labels.dtype) == ("float32", "int32")
    np.testing.assert_array_equal(pixels, arrays["x_train"])
    np.testing.assert_array_equal(labels, np.arange(5))
    assert "x_train: 5 images 6x6x3" in str(file)


def test_placeholder_is_left_out_and_size_factor_found(tmp_path):
    path = write(
        tmp_path / "cifar10_te4_outsize6-6_scte0p841.h5",
        x_train=images(1),
        y_train=[0],
        x_test=images(4),
        y_test=[1, 2, 3, 0],
        extra=[1.0],
    )
    file = read_h5(str(path))
    assert file.factor == 2 ** (-1 / 4)
    assert list(file.splits) == ["test"]
    assert "x_train: one image, a placeholder, left out" in file.report
    assert "extra: not read" in file.report


def test_size_factor_that_is_none_of_the_nine(tmp_path):
    path = write(tmp_path / "a_scte1p1.h5", x_test=images(2), y_test=[0, 1])
    assert read_h5(path).factor == 1.1


@pytest.mark.parametrize(
    ("pixels", "expected", "note"),
    [
        (images(3, (6, 6)), images(3, (6, 6))[..., None], "without channels"),
        (images(3, (3, 6, 5)), images(3, (3, 6, 5)).transpose(0, 2, 3, 1), "put last"),
        (np.full((3, 6, 6, 1), 255, "uint8"), np.ones((3, 6, 6, 1)), "divided by 255"),
        (images(3) * 9, images(3) * 9, "left as they are"),
    ],
)
def test_other_images_are_reported(tmp_path, pixels, expected, note):
    file = read_h5(write(tmp_path / "a.h5", x_test=pixels, y_test=[0, 1, 2]))
    np.testing.assert_allclose(file.splits["test"][0], expected)
    assert note in str(file)


def test_one_hot_labels_are_reported(tmp_path):
    file = read_h5(write(tmp_path / "a.h5", x_test=images(3), y_test=np.eye(4)[1:]))
    assert file.splits["test"][1].tolist() == [1, 2, 3]
    assert "one-hot" in str(file)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"x_test": images(3)},
            r"Expected x_train .* Found: {'x_test': \(3, 6, 6, 3\)",
        ),
        ({"x_test": images(3), "y_test": [0, 1]}, "3 images, y_test 2 labels"),
        ({"x_test": images(3, (6,)), "y_test": [0, 1, 2]}, r"x_test .* \(3, 6\)"),
        (
            {"x_train": images(1), "y_train": [0], "x_test": images(3)},
            "Expected x_train .* Found: .*'x_test'",
        ),
        ({"x_test": images(0), "y_test": []}, r"x_test .* \(0, 6, 6, 3\)"),
        ({"x_test": np.full((1, 4, 4, 1), b"a"), "y_test": [0]}, "x_test must be real"),
        ({"x_test": images(3) * np.nan, "y_test": [0, 1, 2]}, "x_test must be finite"),
        (
            {"x_test": images(3), "y_test": [0, 1, np.nan]},
            r"y_test .* classes.*\[nan\]",
        ),
        ({"x_test": images(3), "y_test": ["a", "b", "c"]}, "y_test must be real"),
        ({"x_test": images(3), "y_test": [0, 0.5, 1]}, "y_test must number classes"),
        ({"x_test": images(3), "y_test": [0, 1, -1]}, "y_test must number classes"),
        ({"x_test": images(3), "y_test": np.ones((3, 2))}, r"y_test .* \(3, 2\)"),
    ],
)
def test_unusable_files_are_an_error(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=rf"a\.h5: .*{message}"):
        read_h5(write(tmp_path / "a.h5", **arrays))


def test_images_that_are_not_finite_are_numbered(tmp_path):
    pixels = images(5)
    pixels[3, 1, 1, 1] = np.inf
    path = write(tmp_path / "a.h5", x_test=pixels, y_test=np.arange(5))
    with pytest.raises(ValueError, match=r"a\.h5: x_test .* inf, .* images \[3\]"):
        read_h5(path)


def test_truncated_file_is_an_error(tmp_path):
    path = write(tmp_path / "a.h5", x_test=images(3), y_test=[0, 1, 2])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(OSError, match=r"a\.h5 cannot be read: .*truncated"):
        read_h5(path)


def test_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`path` .*nothing\.h5"):
        read_h5(tmp_path / "nothing.h5")
