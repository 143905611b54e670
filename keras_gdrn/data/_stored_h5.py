"""What is stored in an HDF5 file, judged before any of it is read.

A file that was damaged or made to do harm must not take memory or time out of
proportion to its size, nor lead to other files.
"""

import errno
import os
import zlib
from math import ceil, prod
from typing import Any

import numpy as np

# gzip cannot pack more bytes into one: a file that claims to hold more does not.
MOST_COMPRESSED = 1100
# Bytes that a chunk, or the labels, may take where the data or the images take less:
# 64 times the largest chunk that h5py chooses for data that are to grow.
ROOM = 2**26
# The numbers of HDF5's filters.
GZIP, SHUFFLE, CHECKSUM, LZF = 1, 2, 3, 32000


def stored_in(file: Any, key: str | bytes) -> Any:
    """What `key` names, unless some of its data are missing or in another file."""
    import h5py

    if isinstance(key, bytes):  # h5py could not decode it
        raise ValueError(f"Names in the file must be UTF-8. Found: {key!r}")
    if not isinstance(file.get(key, getlink=True), h5py.HardLink):
        raise ValueError(f"{key} is a link, and links are not followed.")
    data = file[key]
    if not isinstance(data, h5py.Dataset) or not data.shape:
        return data
    if data.external or data.is_virtual:
        raise ValueError(f"{key} has its data in other files, which are not read.")
    _check_size(data, key, _bytes_on_disk(file.filename))
    return data


def _check_size(data: Any, key: str, size: int) -> None:
    """Refuses what takes more than a file of `size` bytes can hold, or than it is."""
    declared = _bytes(data, data.shape)
    if data.chunks:
        chunk = _bytes(data, data.chunks)
        if chunk > max(ROOM, declared):
            raise ValueError(
                f"{key} must be in chunks of at most its {declared} bytes, or {ROOM}. "
                f"Found: chunks {data.chunks} of {chunk} bytes"
            )
        chunks = prod(ceil(n / c) for n, c in zip(data.shape, data.chunks, strict=True))
        declared = chunks * chunk
        written = data.id.get_num_chunks() >= chunks
    else:
        written = data.id.get_storage_size() >= declared
    if not written or declared > MOST_COMPRESSED * size:
        raise ValueError(
            f"{key} was declared with {declared} bytes, but not all of them were "
            f"written. Found: a file of {size} bytes"
        )


def _bytes(data: Any, shape: tuple[int, ...]) -> int:
    """What the file stores for a part of this shape, before it is packed."""
    return prod(shape) * data.id.get_type().get_size()


def _bytes_on_disk(path: str) -> int:
    """The size of a file without its holes, which are read as zeros.

    Blocks on the disk say less: a file system may compress them, or count them late.
    """
    size = os.path.getsize(path)
    if not hasattr(os, "SEEK_DATA"):  # Windows
        return size
    found = end = 0
    with open(path, "rb", buffering=0) as file:
        try:
            while end < size:
                start = file.seek(end, os.SEEK_DATA)
                end = file.seek(start, os.SEEK_HOLE)
                found += end - start
        except OSError as error:
            # No data after `end`; or a file system that does not say.
            return found if error.errno == errno.ENXIO else size
    return found


def check_stored(data: Any, key: str) -> None:
    """Refuses what is not real numbers, or may unpack to any size."""
    if data.dtype.kind not in "buif":
        raise ValueError(f"{key} must be real numbers. Found: {data.dtype}")
    filters = _filters(data)
    packed = [kind for kind in filters if kind not in (SHUFFLE, CHECKSUM)]
    if packed not in ([], [GZIP], [LZF]):
        raise ValueError(
            f"{key} must be packed by gzip or by lzf, once, or not at all. "
            f"Found: filters {filters}"
        )


def _filters(data: Any) -> list[int]:
    """What the chunks passed through, in this order, when they were written."""
    made = data.id.get_create_plist()
    return [made.get_filter(place)[0] for place in range(made.get_nfilters())]


def unpacked(data: Any, key: str, start: int, stop: int) -> np.ndarray:
    """`data[start:stop]`, unless a chunk of it unpacks to more than it may hold.

    HDF5 itself unpacks a chunk to its end, however much that gives.
    """
    filters = _filters(data)
    if GZIP in filters:
        most = _bytes(data, data.chunks) + 4  # a checksum
        rows = (slice(start, stop), *(slice(0, side) for side in data.shape[1:]))
        for part in data.iter_chunks(rows):
            corner = [s.start // c * c for s, c in zip(part, data.chunks, strict=True)]
            skipped, packed = data.id.read_direct_chunk(tuple(corner))
            if skipped >> filters.index(GZIP) & 1:  # it could not be packed
                continue
            if len(zlib.decompressobj().decompress(packed, most + 1)) > most:
                raise ValueError(
                    f"{key} has chunks of {most - 4} bytes, but one of "
                    f"{len(packed)} bytes unpacks to more."
                )
    return data[start:stop]
