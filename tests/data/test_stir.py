"""STIR: the emoji of the package, MNIST made like it, and published files."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from keras_gdrn.data import (
    STIR_SCENARIOS,
    STIR_SIZES,
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


@pytest.fixture(scope="module")
def emoji() -> np.ndarray:
    """All images of the three splits."""
    splits = [stir_arrays("emoji", split, range(64, 16, -1)) for split in SPLITS]
    for _, labels in splits:
        np.testing.assert_array_equal(labels, np.tile(np.arange(36), 48))
    return np.reshape([levels(images) for images, _ in splits], (3, 48, 36, 64, 64))


def test_emoji_are_as_they_were_rendered(emoji):
    assert hashlib.sha256(emoji.tobytes()).hexdigest() == CHECKSUM


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
    with pytest.raises(ValueError, match="name='aerial'"):
        stir_published("aerial", 1)
    with pytest.raises(ValueError, match="scenario=5"):
        stir_published("emoji", 5)


def test_mnist_is_as_described(mnist_dir):
    images, labels = stir_arrays("mnist", "test", [17, 64], data_dir=mnist_dir)
    assert images.shape == (1000, 64, 64, 1)
    np.testing.assert_array_equal(labels, np.tile(np.repeat(np.arange(10), 50), 2))
    assert images.min(axis=(1, 2)).max() == 0
    assert images.max(axis=(1, 2)).min() >= 254 / 255
    # A digit has 20 of the 28 pixels; small ones are anywhere.
    small, large = np.split(images[..., 0] > 0.5, 2)
    assert 10 < np.mean([np.ptp(np.flatnonzero(i.any(1))) for i in small]) < 14
    assert 40 < np.mean([np.ptp(np.flatnonzero(i.any(1))) for i in large]) < 50
    assert small[:, :8].any() and small[:, -8:].any()


def test_splits_of_mnist_have_no_image_in_common(mnist_dir):
    options = {"sizes": 64, "data_dir": mnist_dir}  # all at the same position
    images = [stir_arrays("mnist", split, **options)[0] for split in SPLITS]
    assert len({image.tobytes() for image in np.concatenate(images)}) == 1500


def test_mnist_is_within_a_level_of_the_described_tools(mnist_dir):
    transform = pytest.importorskip("skimage.transform")
    filters = pytest.importorskip("skimage.filters")
    from keras_gdrn.data import _stir_made

    digits = _stir_made._digits("train+validation", mnist_dir, False)[:, 0]
    for size in (17, 28, 45, 64):
        corners = np.random.RandomState([42, size, 0]).randint(0, 65 - size, (10, 2))
        made = _stir_made._placed(digits, size, 0)
        for digit, image, (x, y) in zip(digits, made, corners, strict=True):
            canvas = np.zeros((64, 64))
            canvas[y : y + size, x : x + size] = transform.resize(
                digit, (size, size), order=3, preserve_range=True
            )
            canvas = filters.gaussian(canvas, sigma=7 / 8 * size / 28)
            canvas = 2 / np.pi * np.arctan(0.02 * (canvas - 128))
            canvas = 255 * (canvas - canvas.min()) / np.ptp(canvas)
            np.testing.assert_allclose(image, np.floor(canvas), atol=1)


def published(path: Path, **changes) -> Path:
    """A file of the published layout: each image holds 2 * split + its label."""
    labels = np.tile(np.arange(9)[:, None], (3, 48, 1, 2))
    values = labels + 2 * np.arange(3)[:, None, None, None]
    images = np.zeros((*labels.shape, 64, 64), "uint8")
    images += values[..., None, None].astype("uint8")
    content = {"imgs": images, "lbls": labels, "scls": labels, **changes}
    np.savez_compressed(path, **{k: v for k, v in content.items() if v is not None})
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return published(tmp_path_factory.mktemp("stir") / "aerial.npz")


def test_published_file_is_read(file):
    images, labels = stir_arrays("aerial", "test", [64, 17, 30], file=file)
    assert images.shape == (54, 64, 64, 1)
    np.testing.assert_array_equal(labels, np.tile(np.repeat(np.arange(9), 2), 3))
    np.testing.assert_array_equal(levels(images[:, 0, 0, 0]), labels + 4)


def test_published_file_in_color_and_its_sizes_go_down(tmp_path):
    images = np.zeros((3, 48, 9, 2, 64, 64, 3), "uint8")
    images[:] = np.arange(64, 16, -1, dtype="uint8").reshape(48, *[1] * 5)
    file = published(tmp_path / "aerial.npz", imgs=images)
    images, labels = stir_arrays("aerial", "validation", [20, 50], file=file)
    assert images.shape == (36, 64, 64, 3)
    np.testing.assert_array_equal(labels, np.tile(np.repeat(np.arange(9), 2), 2))
    np.testing.assert_array_equal(levels(images[:, 9, 9, 1]), np.repeat([20, 50], 18))


LABELS = np.tile(np.arange(9)[:, None], (3, 48, 1, 2))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lbls": None}, "lbls"),
        ({"imgs": np.zeros((3, 48, 9, 2, 32, 32), "uint8")}, "9, 2, 32, 32"),
        ({"imgs": np.zeros((48, 9, 2, 64, 64), "uint8")}, "48, 9, 2, 64, 64"),
        ({"imgs": np.zeros(5, "uint8")}, r"uint8 \(5,\)"),
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


def test_what_cannot_be_made_needs_its_file():
    with pytest.raises(ValueError, match=r"`file` must be the published aerial.npz"):
        stir("aerial", "train")


@pytest.mark.parametrize("kept", [0, 3000, 0.5, 0.999])
def test_damaged_and_absent_files_are_told(tmp_path, file, kept):
    content, damaged = file.read_bytes(), tmp_path / "aerial.npz"
    with pytest.raises(FileNotFoundError, match=r"aerial\.npz"):
        stir("aerial", "train", file=damaged)
    damaged.write_bytes(content[: int(kept * len(content)) if kept < 1 else kept])
    with pytest.raises(ValueError, match=re.escape(str(damaged))):
        stir_arrays("aerial", "train", file=damaged)


def test_objects_must_fit_their_side():
    with pytest.raises(ValueError, match="side=40, sizes up to 41"):
        stir("emoji", "train", 41, side=40)
