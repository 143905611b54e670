"""Training on CIFAR-10 from packed images."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_gdrn.data import SIZE_FACTORS

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def packed_images(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import packed_images

    return packed_images


def random_images(count, side=32):
    """Smooth ones with noise, of all values."""
    random = np.random.default_rng(count)
    steps = random.integers(-20, 21, size=(count, side, side, 3))
    images = np.cumsum(np.cumsum(steps, axis=1), axis=2) / 10
    return images.astype("int64").astype("uint8"), random.integers(
        10, size=count, dtype="int32"
    )


def test_images_are_packed_without_loss(packed_images, tmp_path):
    splits = {"train": random_images(7), "test": random_images(3, side=5)}
    splits["test"][0][0] = [[[0, 255, 0]]]
    packed_images.write(tmp_path / "1.npz", splits)
    packed_images.write(tmp_path / "2.npz", splits)
    for split, expected in splits.items():
        found = packed_images.read([tmp_path / "1.npz", tmp_path / "2.npz"], split)
        for array, part in zip(found, expected, strict=True):
            np.testing.assert_array_equal(array, np.concatenate([part, part]))
        assert found[0].dtype == "uint8"


def test_a_gradient_of_gray_takes_no_room(packed_images):
    ramp = np.arange(32, dtype="uint8")
    gray = np.broadcast_to(
        (3 * ramp[:, None] + 4 * ramp)[None, ..., None], (500, 32, 32, 3)
    )
    assert len(packed_images.packed(gray)) < gray.size / 200


def test_another_file_is_refused(packed_images, tmp_path):
    np.savez(tmp_path / "other.npz", images=np.zeros(3))
    with pytest.raises(ValueError, match=r"other.npz` must be a file of packed images"):
        packed_images.read([tmp_path / "other.npz"], "train")


def train(files, out, *options) -> subprocess.CompletedProcess:
    command = [sys.executable, str(BENCHMARKS / "train_cifar10.py"), *map(str, files)]
    return subprocess.run(
        [*command, "--out", str(out), *map(str, options)],
        env={**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


@pytest.mark.slow
def test_goes_on_where_it_stopped(packed_images, tmp_path):
    splits = {"train": random_images(4), "test": random_images(2)}
    packed_images.write(tmp_path / "1.npz", splits)
    options = ("--preset", "cifar10", "--epochs", 2, "--batch-size", 4)
    run = [tmp_path / "1.npz"], tmp_path / "run"
    for minutes in (0, 0):  # an epoch at least in each
        done = train(*run, *options, "--max-minutes", minutes)
        assert done.returncode == 0, done.stderr
        assert "Out of time" in done.stdout
    assert not (tmp_path / "run" / "accuracies.json").exists()
    done = train(*run, *options)
    assert done.returncode == 0, done.stderr
    assert "Epoch" not in done.stdout  # of training: both were done
    accuracies = json.loads((tmp_path / "run" / "accuracies.json").read_text())
    assert list(accuracies) == [f"{factor:.3g}" for factor in SIZE_FACTORS]
    assert set(accuracies.values()) <= {0.0, 0.5, 1.0}
    other = train(*run, *options[:-1], 2)  # images in a batch
    assert other.returncode == 1 and "error: " in other.stderr
