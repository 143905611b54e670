"""Where the tests find real data; those that need them are skipped without."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _directory_with(name: str) -> Path:
    shared = ROOT.parent / "shared" / "tfds"
    for directory in (os.environ.get("TFDS_DATA_DIR"), shared):
        if directory and (Path(directory) / name).is_dir():
            return Path(directory)
    pytest.skip(f"{name} is neither in TFDS_DATA_DIR nor in {shared}")


@pytest.fixture(scope="session")
def cifar10_dir() -> Path:
    """A directory in which TensorFlow Datasets has prepared CIFAR-10."""
    return _directory_with("cifar10")


@pytest.fixture(scope="session")
def mnist_dir() -> Path:
    """A directory in which TensorFlow Datasets has prepared MNIST."""
    return _directory_with("mnist")
