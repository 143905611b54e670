"""`write_h5`, read again by `read_h5`."""

import numpy as np
import pytest

from keras_gdrn.data import (
    SIZE_FACTORS,
    h5_report,
    read_h5,
    rescaled_arrays,
    write_h5,
)


@pytest.mark.parametrize("factor", SIZE_FACTORS)
def test_round_trip_at_every_size_factor(tmp_path, factor):
    path = write_h5(tmp_path, "digits", ("test",), factor)
    assert h5_report(path).startswith(f"{path.name}, size factor {factor}\n")
    images, labels = read_h5(path)["test"]
    expected, classes = rescaled_arrays("digits", "test", factor)
    np.testing.assert_allclose(images, expected, atol=1e-6)
    np.testing.assert_array_equal(labels, classes)


def test_several_splits_in_one_file(tmp_path, cifar10_dir):
    options = {"limit": 300, "data_dir": cifar10_dir}
    path = write_h5(tmp_path, "cifar10", ("train", "validation"), **options)
    assert path.name == "cifar10_tr300_vl300_outsize64-64_sctr1p000.h5"
    splits = read_h5(path)
    assert list(splits) == ["train", "validation"]
    for split, (images, labels) in splits.items():
        expected, classes = rescaled_arrays("cifar10", split, **options)
        np.testing.assert_allclose(images, expected, atol=1e-6)
        np.testing.assert_array_equal(labels, classes)


def test_complete_file_is_left_as_it_is(tmp_path):
    path = write_h5(tmp_path, "digits", ("test",), limit=10)
    path.write_bytes(b"mine")
    assert write_h5(tmp_path, "digits", ("test",), limit=10) == path
    assert path.read_bytes() == b"mine"


def test_interrupted_file_does_not_have_the_name(tmp_path, monkeypatch):
    from keras_gdrn.data import _write_h5

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_write_h5, "_write_split", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_h5(tmp_path, "digits", ("test",), limit=10)
    assert not list(tmp_path.glob("*.h5"))
    monkeypatch.undo()
    assert len(read_h5(write_h5(tmp_path, "digits", ("test",), limit=10))) == 1


@pytest.mark.parametrize("splits", [(), "test", ("tests",), ("train+validation",)])
def test_unknown_splits(tmp_path, splits):
    with pytest.raises(ValueError, match="`splits` must be some of"):
        write_h5(tmp_path, "digits", splits)


def test_canvases_that_differ(tmp_path):
    with pytest.raises(ValueError, match="files of their own"):
        write_h5(tmp_path, "stl10", ("train", "test"))
