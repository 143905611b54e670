"""HDF5 files that point elsewhere, or declare what they do not hold, are refused."""

import tracemalloc

import h5py
import numpy as np
import pytest

from keras_gdrn.data import h5_report, read_h5, rescaled_h5

SHAPE = (3, 4, 4, 1)


def external_storage(file, folder):
    secret = folder / "secret.txt"
    secret.write_bytes(bytes(range(48)))
    file.create_dataset("x_test", SHAPE, "uint8", external=[(str(secret), 0, 48)])


def external_link(file, folder):
    with h5py.File(folder / "other.h5x", "w") as other:
        other["pixels"] = np.zeros(SHAPE, "uint8")
    file["x_test"] = h5py.ExternalLink(str(folder / "other.h5x"), "/pixels")


def soft_link(file, folder):
    file["pixels"] = np.zeros(SHAPE, "uint8")
    file["x_test"] = h5py.SoftLink("/pixels")


def virtual_dataset(file, folder):
    with h5py.File(folder / "other.h5x", "w") as other:
        other["pixels"] = np.zeros(SHAPE, "uint8")
    layout = h5py.VirtualLayout(SHAPE, "uint8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5x"), "pixels", SHAPE)
    file.create_virtual_dataset("x_test", layout)


def no_chunk_written(file, folder):
    file.create_dataset("x_test", (3, 9000, 9000, 1), "float32", chunks=True)


def one_chunk_not_written(file, folder):
    images = file.create_dataset("x_test", SHAPE, "float32", chunks=(1, 4, 4, 1))
    images[:2] = 1.0


def never_allocated(file, folder):
    file.create_dataset("x_test", (3, 9000, 9000, 1), "float32")


def packed_to_nothing(file, folder):
    shape, filters = (3, 2000, 2000, 1), {"scaleoffset": 0, "compression": "gzip"}
    file.create_dataset("x_test", shape, "uint8", chunks=shape, **filters)[:] = 0


HOSTILE = {
    external_storage: "x_test has its data in other files",
    external_link: "x_test is a link",
    soft_link: "x_test is a link",
    virtual_dataset: "x_test has its data in other files",
    no_chunk_written: "x_test was declared with 972000000 bytes, but not all",
    one_chunk_not_written: "x_test was declared with 192 bytes, but not all",
    never_allocated: "x_test was declared with 972000000 bytes, but not all",
    packed_to_nothing: "x_test was declared with 12000000 bytes, but not all",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_refused_before_anything_is_read(tmp_path, kind):
    path = tmp_path / "a_scte1p000.h5"
    with h5py.File(path, "w") as file:
        kind(file, tmp_path)
        file["y_test"] = [0, 1, 2]
    tracemalloc.start()
    for read in (
        lambda: read_h5(path),
        lambda: h5_report(tmp_path),
        lambda: rescaled_h5(tmp_path, "test"),
    ):
        with pytest.raises(ValueError, match=rf"a_scte1p000\.h5: {HOSTILE[kind]}"):
            read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6


def test_labels_that_were_never_written(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x_test"] = np.zeros(SHAPE)
        file.create_dataset("y_test", (10**9,), "int64", chunks=(10**6,))
    with pytest.raises(ValueError, match="y_test was declared with 8000000000 bytes"):
        read_h5(tmp_path / "a.h5")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (2, 3, 3, 1)},
        {"chunks": (2, 4, 4, 1), "compression": "gzip", "shuffle": True},
        {"chunks": (500, 8, 8, 1), "compression": "gzip", "compression_opts": 9},
    ],
)
def test_honest_files_are_read_however_they_are_stored(tmp_path, options):
    count = 2000 if options.get("compression") else 3
    images = np.zeros((count, 8, 8, 1), "float32")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x_test", data=images, **options)
        file["y_test"] = np.arange(count) % 10
    pixels, labels = read_h5(tmp_path / "a.h5").splits["test"]
    np.testing.assert_array_equal(pixels, images)
    np.testing.assert_array_equal(labels, np.arange(count) % 10)


def test_rows_that_only_add_up_to_one_are_not_one_hot(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x_test"] = np.zeros(SHAPE)
        file["y_test"] = [[2, -1], [1, 0], [0, 1]]
    with pytest.raises(ValueError, match=r"y_test must be \(N,\) or \(N, 1\)"):
        read_h5(tmp_path / "a.h5")
