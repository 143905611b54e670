"""Finding and reading the published images."""

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest

from keras_gdrn.data import DATASETS, original_arrays, rescaled
from keras_gdrn.data._datasets import Slice
from keras_gdrn.data._load import prepared_directory


def write_version(data_dir: Path, name: str, version: str) -> Path:
    """An empty directory that looks as if it had been prepared."""
    directory = data_dir / name / version
    directory.mkdir(parents=True)
    (directory / "dataset_info.json").touch()
    return directory


def test_absent_data_are_an_error_at_once(tmp_path):
    start = time.perf_counter()
    with pytest.raises(FileNotFoundError) as error:
        rescaled("stl10", "test", data_dir=tmp_path)
    assert time.perf_counter() - start < 1
    command = "import tensorflow_datasets as tfds; tfds.load('stl10', data_dir="
    assert f"{command}{str(tmp_path)!r})" in str(error.value)
    assert "download=True" in str(error.value)


def test_data_dir_then_environment_then_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "environment"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    argument, environment, home = (
        write_version(tmp_path / place, "mnist", "3.0.1")
        for place in ("argument", "environment", "tensorflow_datasets")
    )
    assert prepared_directory("mnist", tmp_path / "argument") == argument
    assert prepared_directory("mnist") == environment
    monkeypatch.delenv("TFDS_DATA_DIR")
    assert prepared_directory("mnist") == home


def test_the_newest_complete_version_is_read(tmp_path):
    for version in ("3.0.2", "3.0.10", "3.1.0.incompleteA1B2C3"):
        write_version(tmp_path, "cifar10", version)
    (tmp_path / "cifar10" / "4.0.0").mkdir()
    assert prepared_directory("cifar10", tmp_path).name == "3.0.10"


def test_download_prepares_in_data_dir(tmp_path, monkeypatch):
    import tensorflow_datasets as tfds

    class Builder:
        def __init__(self, name, data_dir):
            self.place = Path(data_dir), name

        def download_and_prepare(self):
            write_version(*self.place, "1.0.0")

    monkeypatch.setattr(tfds, "builder", Builder)
    directory = prepared_directory("stl10", tmp_path, download=True)
    assert directory == tmp_path / "stl10" / "1.0.0"
    monkeypatch.delattr(tfds, "builder")  # what is there is not downloaded again
    assert prepared_directory("stl10", tmp_path, download=True) == directory


def test_digits_are_split_by_image_and_always_the_same():
    (train, labels), (test, _) = (
        original_arrays("digits", split) for split in ("train", "test")
    )
    assert (train.shape, test.shape) == ((1000, 8, 8, 1), (797, 8, 8, 1))
    assert (train.dtype, test.dtype, labels.dtype) == ("uint8", "uint8", "int32")
    assert not {i.tobytes() for i in train} & {i.tobytes() for i in test}
    assert labels[:12].tolist() == [2, 8, 2, 6, 6, 7, 1, 9, 8, 5, 2, 8]


def test_splits_are_slices_that_join_in_order(cifar10_dir, monkeypatch):
    info = dataclasses.replace(
        DATASETS["cifar10"],
        train=(Slice("train", 0, 30), Slice("test", 0, 20)),
        validation=(Slice("train", 30, 40),),
    )
    monkeypatch.setitem(DATASETS, "cifar10", info)

    def load(split, limit):
        return original_arrays("cifar10", split, limit=limit, data_dir=cifar10_dir)

    joined, labels = load("train+validation", 57)
    assert joined.shape == (57, 32, 32, 3)
    assert (joined.dtype, labels.dtype) == ("uint8", "int32")
    train, _ = load("train", None)
    validation, _ = load("validation", 7)
    np.testing.assert_array_equal(joined, np.concatenate([train, validation]))
    assert len({image.tobytes() for image in joined}) == 57
    test, _ = load("test", 20)
    np.testing.assert_array_equal(test, train[30:])
