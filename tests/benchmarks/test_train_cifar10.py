"""Training on CIFAR-10 from packed images."""

import json

import numpy as np
import pytest

from keras_gdrn.data import SIZE_FACTORS


@pytest.fixture
def packed_images(benchmarks):
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


@pytest.mark.parametrize("content", [b'{"0.5": 0.25,', b"", b"\xff\xfe", b"[1.0]"])
def test_damaged_accuracies_are_told_by_their_file(packed_images, tmp_path, content):
    import train_cifar10

    file = tmp_path / "accuracies.json"
    assert train_cifar10.accuracies_in(file) == {}
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"accuracies\.json must be .* Delete it"):
        train_cifar10.accuracies_in(file)


@pytest.mark.slow
def test_goes_on_where_it_stopped(packed_images, on_jax, tmp_path):
    """Without TensorFlow. That the result is the same is told by the tests of `fit`."""
    splits = {"train": random_images(4), "test": random_images(2)}
    packed_images.write(tmp_path / "1.npz", splits)

    def train(*options):
        small = ("--preset", "cifar10", "--epochs", 2, "--out", tmp_path / "run")
        return on_jax("train_cifar10.py", tmp_path / "1.npz", *small, *options)

    def epochs():
        log = (tmp_path / "run" / "training" / "log.csv").read_text("utf-8")
        return [line.split(",")[0] for line in log.splitlines()[1:]]

    done = train("--batch-size", 4, "--max-minutes", 0)  # one epoch at least
    assert done.returncode == 0, done.stderr
    assert "Out of time" in done.stdout
    assert epochs() == ["0"]
    done = train("--batch-size", 4)
    assert done.returncode == 0, done.stderr
    assert epochs() == ["0", "1"]
    accuracies = json.loads((tmp_path / "run" / "accuracies.json").read_text())
    assert list(accuracies) == [f"{factor:.3g}" for factor in SIZE_FACTORS]
    assert set(accuracies.values()) <= {0.0, 0.5, 1.0}
