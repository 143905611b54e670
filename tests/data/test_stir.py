"""STIR: the emoji of the package, MNIST made like it, and published files."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from keras_gdrn.data import (
    STIR_SCENARIOS,
    STIR_SIZES,
    _stir_images,
    stir,
    stir_arrays,
    stir_published,
)

SPLITS = ("train", "validation", "test")
# Of images (3, 48, 36, 64, 64), as they were rendered, sizes from 64 down.
CHECKSUM = "1877d706cfa8b2df76d55fe948c1e943bf37d3dd9f45ac70e7a5b6b8818eb6e0"


def levels(images: np.ndarray) -> np.ndarray:
    """The bytes that images in [0, 1] were."""
    whole = np.round(255 * images)
    np.testing.assert_allclose(images, whole / 255, atol=1e-7)
    return whole.astype("uint8")


def test_emoji_are_as_they_were_rendered():
    splits = []
    for split in SPLITS:
        images, labels = stir_arrays("emoji", split, range(64, 16, -1))
        np.testing.assert_array_equal(labels, np.tile(np.arange(36), 48))
        splits.append(levels(images))
    assert hashlib.sha256(np.stack(splits).tobytes()).hexdigest() == CHECKSUM


def test_scenarios_are_thirds_and_all():
    assert STIR_SCENARIOS[1] + STIR_SCENARIOS[2] + STIR_SCENARIOS[3] == STIR_SIZES
    assert STIR_SCENARIOS[2] == tuple(range(33, 49))
    assert STIR_SCENARIOS[4] == STIR_SIZES == tuple(range(17, 65))


def test_squares_are_cut_anywhere_around_the_object():
    images, labels = stir_arrays("emoji", "train", 32)
    cut, same_labels = stir_arrays("emoji", "train", 32, side=40, seed=1)
    assert cut.shape == (36, 40, 40, 1)
    np.testing.assert_array_equal(labels, same_labels)
    np.testing.assert_allclose(cut.sum((1, 2)), images.sum((1, 2)), rtol=1e-5)
    assert len({np.flatnonzero(image.any((1, 2)))[0] for image in cut}) > 4
    again, others = (stir("emoji", "train", 32, side=40, seed=n) for n in (1, 2))
    np.testing.assert_array_equal([image for image, _ in again], cut)
    assert not np.array_equal([image for image, _ in others], cut)


def test_published_accuracies():
    """The best means that the authors tell, and two that they draw."""
    best = {}
    for name in ("emoji", "mnist"):
        for scenario in STIR_SCENARIOS:
            means = {k: v.mean() for k, v in stir_published(name, scenario).items()}
            assert len(means) == 11
            best[name, scenario] = max(means.items(), key=lambda item: item[1])
    assert [round(mean, 1) for _, mean in best.values()] == [
        *(76.5, 84.3, 69.1, 100.0),
        *(93.5, 92.0, 87.5, 95.3),
    ]
    assert best["emoji", 1][0] == "ensemble" and best["mnist", 4][0] == "pixel_pool"


@pytest.mark.slow
def test_mnist_has_fifty_of_each_digit_in_each_split(mnist_dir):
    images = []
    for split in SPLITS:
        made, labels = stir_arrays("mnist", split, [64, 17], data_dir=mnist_dir)
        assert made.shape == (1000, 64, 64, 1)
        np.testing.assert_array_equal(labels, np.tile(np.repeat(np.arange(10), 50), 2))
        images += [image.tobytes() for image in made[:500]]  # all at one position
        assert made[500:, :8].any() and made[500:, -8:].any()
    assert len(set(images)) == 1500


# Deviations of the levels in every eighth row, as scikit-image 0.26 makes the images:
# `resize(order=3, preserve_range=True)`, placed, `gaussian(sigma=7 / 8 * size / 28)`,
# 2 / π arctan(0.02 (x - 128)), stretched to 0 … 255, rounded down.
BY_SCIKIT_IMAGE = {
    17: [0.0, 23.32, 44.65, 51.84, 49.32, 35.59, 34.92, 30.31],
    45: [38.27, 58.55, 71.6, 75.91, 72.46, 74.52, 72.21, 34.3],
}


@pytest.mark.parametrize("size", BY_SCIKIT_IMAGE)
def test_digits_are_made_as_by_the_described_tools(size):
    digits = np.random.RandomState(0).randint(0, 256, (10, 28, 28))
    deviations = _stir_images._pasted(digits, size, 0).std((0, 2))[4::8]
    np.testing.assert_allclose(deviations, BY_SCIKIT_IMAGE[size], atol=0.03)


LABELS = np.tile(np.arange(9)[:, None], (3, 48, 1, 2))


def published(path: Path, channels: tuple[int, ...] = (), **changes) -> Path:
    """A file of the published layout: each image holds 80 * split + size + label."""
    sizes = np.arange(64, 16, -1)[:, None, None]
    values = 80 * np.arange(3)[:, None, None, None] + sizes + LABELS
    shape = (*LABELS.shape, 64, 64, *channels)
    values = values.reshape(*LABELS.shape, 1, 1, *np.ones_like(channels))
    images = np.broadcast_to(values.astype("uint8"), shape)
    content = {"imgs": images, "lbls": LABELS, "scls": LABELS, **changes}
    np.savez_compressed(path, **{k: v for k, v in content.items() if v is not None})
    return path


@pytest.mark.parametrize("channels", [(), (3,)])
def test_published_file_is_read(tmp_path, channels):
    file = published(tmp_path / "aerial.npz", channels)
    images, labels = stir_arrays("aerial", "test", [64, 17, 30], file=file)
    assert images.shape == (54, 64, 64, *(channels or (1,)))
    np.testing.assert_array_equal(labels, np.tile(np.repeat(np.arange(9), 2), 3))
    expected = 160 + np.repeat([64, 17, 30], 18) + labels
    np.testing.assert_array_equal(levels(images[:, 9, 9, -1]), expected)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lbls": None}, "lbls"),
        ({"imgs": np.zeros((3, 48, 9, 2, 32, 32), "uint8")}, "9, 2, 32, 32"),
        ({"imgs": np.zeros((48, 9, 2, 64, 64), "uint8")}, "48, 9, 2, 64, 64"),
        ({"imgs": np.zeros(5, "uint8")}, r"uint8 \(5,\)"),
        ({"imgs": np.zeros((*LABELS.shape, 64, 64), "float32")}, "float32"),
        ({"lbls": LABELS[:2]}, "2, 48, 9, 2"),
        ({"lbls": LABELS // 2}, "5 classes"),
        ({"lbls": np.array([None, 1])}, "Object arrays"),
    ],
)
def test_other_content_is_told(tmp_path, changes, said):
    file = published(tmp_path / "aerial.npz", **changes)
    with pytest.raises(ValueError, match=said) as error:
        stir_arrays("aerial", "train", file=file)
    assert str(file) in str(error.value)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    return published(tmp_path_factory.mktemp("stir") / "aerial.npz").read_bytes()


@pytest.mark.parametrize("kept", [0, 3000, 0.5, 0.999])
def test_damaged_and_absent_files_are_told(tmp_path, whole, kept):
    damaged = tmp_path / "aerial.npz"
    with pytest.raises(FileNotFoundError, match=r"aerial\.npz"):
        stir("aerial", "train", file=damaged)
    damaged.write_bytes(whole[: int(kept * len(whole)) if kept < 1 else kept])
    with pytest.raises(ValueError, match=re.escape(str(damaged))):
        stir_arrays("aerial", "train", file=damaged)


def test_what_cannot_be_made_needs_its_file():
    message = "`file` must be the published aerial.npz.* Received: file=None"
    with pytest.raises(ValueError, match=message):
        stir("aerial", "train")
