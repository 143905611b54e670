"""Finding and reading the published images."""

import dataclasses
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from keras_gdrn.data import DATASETS, original_arrays, rescaled
from keras_gdrn.data._datasets import Slice
from keras_gdrn.data._tfds import prepared_directory


def write_version(*parts) -> Path:
    """An empty directory that looks as if it had been prepared."""
    directory = Path(*parts)
    directory.mkdir(parents=True)
    (directory / "dataset_info.json").touch()
    return directory


def test_absent_data_are_an_error_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)  # not even imported
    with pytest.raises(FileNotFoundError, match="download=True") as error:
        rescaled("stl10", "test", data_dir=tmp_path)
    command = "import tensorflow_datasets as tfds; tfds.load('stl10', data_dir="
    assert f"{command}{str(tmp_path)!r})" in str(error.value)


def test_data_dir_then_environment_then_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "environment"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    argument, environment, home = (
        write_version(tmp_path, place, "mnist", "3.0.10")
        for place in ("argument", "environment", "tensorflow_datasets")
    )
    # Neither older nor incomplete.
    for version in ("3.0.2", "3.1.0.incompleteA1B2C3"):
        write_version(tmp_path, "argument", "mnist", version)
    (tmp_path / "argument" / "mnist" / "4.0.0").mkdir()
    assert prepared_directory("mnist", tmp_path / "argument") == argument
    assert prepared_directory("mnist") == environment
    monkeypatch.delenv("TFDS_DATA_DIR")
    assert prepared_directory("mnist") == home


def test_download_prepares_in_data_dir(tmp_path, monkeypatch):
    def builder(name, data_dir):
        prepare = partial(write_version, data_dir, name, "1.0.0")
        return SimpleNamespace(download_and_prepare=prepare)

    monkeypatch.setattr("tensorflow_datasets.builder", builder)
    # What is there is not downloaded again.
    for _ in range(2):
        directory = prepared_directory("stl10", tmp_path, download=True)
        assert directory == tmp_path / "stl10" / "1.0.0"


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

    def load(split, limit=None):
        return original_arrays("cifar10", split, limit=limit, data_dir=cifar10_dir)

    joined, labels = load("train+validation", 57)
    assert joined.shape == (57, 32, 32, 3)
    assert (joined.dtype, labels.dtype) == ("uint8", "int32")
    train, validation, test = (load(s)[0] for s in ("train", "validation", "test"))
    np.testing.assert_array_equal(joined, [*train, *validation[:7]])
    assert len({image.tobytes() for image in joined}) == 57
    np.testing.assert_array_equal(test[:20], train[30:])
