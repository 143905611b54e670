"""HDF5 files that point elsewhere, or declare what they do not hold, are refused."""

import os
import tracemalloc
import zlib

import h5py
import numpy as np
import pytest

from keras_gdrn.data import _read_h5, _stored_h5, h5_report, read_h5, rescaled_h5

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
    file.create_dataset("x_test", (3, 9000, 9000, 1), "float32", chunks=(1, 90, 90, 1))


def one_chunk_not_written(file, folder):
    images = file.create_dataset("x_test", SHAPE, "float32", chunks=(1, 4, 4, 1))
    images[:2] = 1.0


def never_allocated(file, folder):
    file.create_dataset("x_test", (3, 9000, 9000, 1), "float32")


def packed_to_nothing(file, folder):
    shape, filters = (3, 2000, 2000, 1), {"scaleoffset": 0, "compression": "gzip"}
    file.create_dataset("x_test", shape, "uint8", chunks=shape, **filters)[:] = 0


def large_chunk(file, folder):
    options = {"chunks": (3, 4, 4, 2**21), "maxshape": (None,) * 4}
    images = file.create_dataset("x_test", SHAPE, "u1", compression="gzip", **options)
    images.id.write_direct_chunk((0, 0, 0, 0), zlib.compress(bytes(48 * 2**21)))


def large_chunks_for_their_file(file, folder):
    """Nearly empty ones, of which a crafted index may have as many as it likes."""
    options = {"chunks": (1, 1, 1, 2**20), "maxshape": (None,) * 4}
    images = file.create_dataset("x_test", SHAPE, "u1", compression="gzip", **options)
    for place in np.ndindex(SHAPE):
        images.id.write_direct_chunk(place, zlib.compress(b""))


def packed_twice(file, folder):
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(SHAPE)
    for _ in range(2):
        made.set_deflate(9)
    space = h5py.h5s.create_simple(SHAPE)
    kind = h5py.h5t.NATIVE_UINT8
    images = h5py.h5d.create(file.id, b"x_test", kind, space, made)
    packed = zlib.compress(zlib.compress(bytes(2**26), 9), 9)
    images.write_direct_chunk((0, 0, 0, 0), packed)


def sparse(file, folder):
    shape = (3, 3000, 3000, 1)
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    made.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space = h5py.h5s.create_simple(shape)
    h5py.h5d.create(file.id, b"x_test", h5py.h5t.NATIVE_UINT8, space, made)


def not_utf8(file, folder):
    file[b"\xff"] = np.zeros(SHAPE, "uint8")


HOSTILE = {
    external_storage: "x_test has its data in other files",
    external_link: "x_test is a link",
    soft_link: "x_test is a link",
    virtual_dataset: "x_test has its data in other files",
    no_chunk_written: "x_test was declared with 972000000 bytes, but not all",
    one_chunk_not_written: "x_test was declared with 192 bytes, but not all",
    never_allocated: "x_test was declared with 972000000 bytes, but not all",
    packed_to_nothing: "x_test was declared with 12000000 bytes, but not all",
    large_chunk: r"x_test must be in chunks .* \(3, 4, 4, 2097152\) of 100663296 bytes",
    large_chunks_for_their_file: "x_test was declared with 50331648 bytes, but not all",
    packed_twice: r"x_test must be packed .* once, or not at all.* \[1, 1\]",
    not_utf8: r"Names in the file must be UTF-8.* b'\\xff'",
}
if hasattr(os, "SEEK_DATA"):
    HOSTILE[sparse] = "x_test was declared with 27000000 bytes, but not all"


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


RAGGED = np.array([np.arange(n, dtype="u1") for n in (1, 2, 3)], h5py.vlen_dtype("u1"))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array(["a", "b", "c"], h5py.string_dtype()), "y_test must be real numbers"),
        (RAGGED, "y_test must be real numbers. Found: object"),
        (np.zeros(3, [("a", "u1")]), r"y_test must be real .* \[\('a'"),
        (np.zeros(0), r"3 images, y_test 0 labels. Found: shape \(0,\)"),
        (np.zeros((4, 3)), r"3 images, y_test 4 labels. Found: shape \(4, 3\)"),
        (
            np.zeros((3, 1, 1)),
            r"y_test must .* one-hot.* Found: shape \(3, 1, 1\) of 24 bytes",
        ),
        (
            np.zeros((3, 3000)),
            r"y_test must .* one-hot.* Found: shape \(3, 3000\) of 72000 bytes",
        ),
    ],
)
def test_labels_are_refused_before_they_are_read(
    tmp_path, monkeypatch, labels, message
):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x_test"] = np.zeros(SHAPE)
        file.create_dataset("y_test", data=labels, dtype=labels.dtype)
    for module in (_read_h5, _stored_h5):
        monkeypatch.setattr(module, "ROOM", 1000)
    # A crafted one may never end, so none begins.
    monkeypatch.delattr(h5py.Dataset, "__getitem__")
    for read in (read_h5, lambda path: h5_report(path.parent)):
        with pytest.raises(ValueError, match=rf"a\.h5: .*{message}"):
            read(tmp_path / "a.h5")


@pytest.mark.parametrize("key", ["x_test", "y_test"])
@pytest.mark.parametrize("checksum", [False, True])
def test_chunk_that_unpacks_to_more_than_it_may_hold(tmp_path, key, checksum):
    options = {"compression": "gzip", "fletcher32": checksum}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, shape in {"x_test": SHAPE, "y_test": SHAPE[:1]}.items():
            data = file.create_dataset(name, shape, "u1", chunks=shape, **options)
            data[:] = 0
            if name == key:
                # Without the checksum, which HDF5 adds around what gzip packed.
                skipped = 2 if checksum else 0
                packed = zlib.compress(bytes(2**26), 9)
                data.id.write_direct_chunk((0,) * len(shape), packed, skipped)
    tracemalloc.start()
    message = rf"a\.h5: {key} has chunks of .* bytes, but one of \d+ bytes unpacks"
    with pytest.raises(ValueError, match=message):
        read_h5(tmp_path / "a.h5")
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
        {"chunks": (2, 3, 3, 1), "compression": "gzip", "fletcher32": True},
        {"chunks": (2, 3, 3, 1), "compression": "lzf", "fletcher32": True},
        {"chunks": (900, 9, 9, 3), "compression": "gzip", "maxshape": (None,) * 4},
        {"chunks": (500, 8, 8, 1), "compression": "gzip", "compression_opts": 9},
    ],
)
def test_honest_files_are_read_however_they_are_stored(tmp_path, options):
    count = 2000 if options.get("compression") else 3
    images = np.zeros((count, 8, 8, 1), "float32")
    images[::2] = np.random.default_rng(0).random(images[::2].shape)
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
