"""Rescaled data sets, written to HDF5 files as the authors do."""

import os
from pathlib import Path

from keras_gdrn._checks import check_factor
from keras_gdrn.data._datasets import dataset_info
from keras_gdrn.data._read_h5 import KEYS
from keras_gdrn.data._rescaled import canvas_of, rescaled

CHUNK = 256


def write_h5(
    folder: str | os.PathLike,
    name: str,
    splits: tuple[str, ...],
    factor: float = 1.0,
    **options,
) -> Path:
    """Write splits of a rescaled data set to one file, as the authors do.

    The file has `x_train, y_train`, `x_val, y_val` and `x_test, y_test`, as far as its
    splits go: images `(N, H, W, C)` float32 in [0, 1] and labels `(N, 1)` int32. Its
    name states what it holds, such as
    `cifar10_te10000_outsize64-64_scte0p841.h5`. Batches are written as they are
    computed; the file has its name only when it is complete.

    Args:
        folder: Folder to write into, made if need be.
        name, factor: As for `rescaled`.
        splits: Which of "train", "validation" and "test", of one canvas.
        **options: `canvas`, `limit`, `data_dir` and `download`, as for `rescaled`.

    Returns:
        The path of the file. An existing one is left as it is.

    Raises:
        ValueError, FileNotFoundError: As `rescaled`, and if `splits` is empty, or its
            canvases differ.

    Example:

    >>> path = write_h5("files", "digits", ("test",), 2**-0.25)
    >>> path.name
    'digits_te797_outsize40-40_scte0p841.h5'
    """
    import h5py

    info, limit = dataset_info(name), options.get("limit")
    if not isinstance(splits, (tuple, list)) or not set(KEYS) >= set(splits) > set():
        raise ValueError(
            f"`splits` must be some of {tuple(KEYS)}. Received: splits={splits!r}"
        )
    sizes = {canvas_of(info, split, options.get("canvas")) for split in splits}
    if len(sizes) > 1:
        raise ValueError(
            f"Test images of {name} have a canvas of {info.test_canvas} pixels, "
            f"others of {info.canvas}: write them to files of their own."
        )
    counts = {s: min(info.size(s), limit or info.size(s)) for s in splits}
    shape = (*sizes.pop(), info.image_shape[-1])
    path = Path(folder, _file_name(name, counts, shape, check_factor(factor)))
    if path.exists():  # asked before anything is read
        return path
    data = {s: rescaled(name, s, factor, batch_size=CHUNK, **options) for s in splits}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with h5py.File(partial, "w") as file:
        for split, batches in data.items():
            count = counts[split]
            x = file.create_dataset(f"x_{KEYS[split]}", (count, *shape), "float32")
            y = file.create_dataset(f"y_{KEYS[split]}", (count, 1), "int32")
            for number, (images, labels) in enumerate(batches.as_numpy_iterator()):
                rows = slice(number * CHUNK, number * CHUNK + len(labels))
                x[rows], y[rows] = images, labels[:, None]
    return partial.replace(path)


def _file_name(name: str, counts: dict[str, int], shape: tuple, factor: float) -> str:
    abbreviations = {"train": "tr", "validation": "vl", "test": "te"}
    parts = [name, *(f"{abbreviations[s]}{count}" for s, count in counts.items())]
    scale = f"{factor:.3f}".replace(".", "p")
    kind = "scte" if set(counts) == {"test"} else "sctr"
    return "_".join([*parts, f"outsize{shape[0]}-{shape[1]}", f"{kind}{scale}.h5"])
