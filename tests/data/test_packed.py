"""Images in one file, which is read without TensorFlow."""

import dataclasses
import io
import sys

import numpy as np
import pytest
from PIL import Image

from keras_gdrn.data import DATASETS, original_arrays, pack, rescaled_arrays
from keras_gdrn.data._datasets import Slice

PARTS = {"train": 6, "test": 4}


@pytest.fixture
def small(monkeypatch):
    """Few images of Fashion-MNIST, and no TensorFlow Datasets."""
    info = dataclasses.replace(
        DATASETS["fashion_mnist"],
        train=(Slice("train", 0, 4), Slice("test", 3, 4)),
        validation=(Slice("train", 4, 6),),
        test=(Slice("test", 0, 3),),
    )
    monkeypatch.setitem(DATASETS, "fashion_mnist", info)
    return info


def png(image) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image[..., 0]).save(file, "PNG")
    return file.getvalue()


def drawn(part: str):
    random = np.random.default_rng(len(part))
    images = random.integers(0, 256, (PARTS[part], 28, 28, 1), "uint8")
    return images, random.integers(0, 10, PARTS[part])


def test_packed_images_are_the_published_ones(small, tmp_path, monkeypatch):
    def read(directory, part):
        images, labels = drawn(part)
        return [png(image) for image in images], labels

    monkeypatch.setattr("keras_gdrn.data._packed.read_encoded", read)
    monkeypatch.setattr("keras_gdrn.data._packed.prepared_directory", lambda *_: None)
    file = pack("fashion_mnist", tmp_path / "new")
    assert file == tmp_path / "new" / "fashion_mnist.npz"
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    train, test = drawn("train"), drawn("test")
    where = {"data_dir": file.parent}
    for split, expected in {
        "train": [
            np.concatenate([a[:4], b[3:]]) for a, b in zip(train, test, strict=True)
        ],
        "validation": [a[4:] for a in train],
        "test": [a[:3] for a in test],
    }.items():
        found = original_arrays("fashion_mnist", split, **where)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    images, labels = rescaled_arrays("fashion_mnist", "test", limit=2, **where)
    assert images.shape == (2, 72, 72, 1) and labels.dtype == "int32"
    np.testing.assert_allclose(images[:, 22:50, 22:50], test[0][:2] / 255, atol=1e-6)


def test_a_damaged_file_is_refused(small, tmp_path):
    """Cut off, changed, or another one."""
    file, whole = tmp_path / "fashion_mnist.npz", io.BytesIO()
    np.savez(whole, test_images=np.zeros(100, "uint8"))
    content = whole.getvalue()
    middle = len(content) // 2
    changed = content[:150] + b"?" + content[151:]
    for damaged in (b"", b"text", content[:middle], changed, content):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"npz must be a file of `pack`, and und"):
            original_arrays("fashion_mnist", "test", data_dir=tmp_path)


@pytest.mark.slow
def test_those_of_tensorflow_datasets(mnist_dir, tmp_path):
    """In the same order, all of them."""
    pack("mnist", tmp_path, data_dir=mnist_dir)
    for split in ("train+validation", "test"):
        packed = original_arrays("mnist", split, data_dir=tmp_path)
        published = original_arrays("mnist", split, data_dir=mnist_dir)
        for a, b in zip(packed, published, strict=True):
            np.testing.assert_array_equal(a, b)


def test_nothing_to_pack(tmp_path):
    with pytest.raises(ValueError, match="scikit-learn has these images"):
        pack("digits", tmp_path)
    with pytest.raises(FileNotFoundError, match="download=True"):
        pack("stl10", tmp_path, data_dir=tmp_path)
    assert not list(tmp_path.iterdir())
