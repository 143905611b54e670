"""HDF5 files with the names and the layouts of the authors' own."""

from pathlib import Path

import h5py
import numpy as np

from keras_gdrn.data import rescaled_arrays


def write(path: Path, **arrays) -> Path:
    with h5py.File(path, "w") as file:
        for key, value in arrays.items():
            file[key] = value
    return path


def write_folder(
    folder: Path,
    factors: tuple[float, ...],
    *,
    dtype: str = "float32",
    white: float = 255,
    batch_axis: bool | None = True,
) -> Path:
    """Digits: training images, with a test set beside them, and others alone.

    The latter have one image in place of the training images, with or without an axis
    for it, or none (`None`). Values are up to `white`.
    """

    def split(key: str, source: str, factor: float, limit: int) -> dict:
        images, labels = rescaled_arrays("digits", source, factor, limit=limit)
        images = np.round(white * images) if dtype == "uint8" else white * images
        return {f"x_{key}": images.astype(dtype), f"y_{key}": labels[:, None]}

    shape = {True: (1, 40, 40, 1), False: (40, 40, 1), None: (0,)}[batch_axis]
    place = {f"x_{key}": np.zeros(shape, dtype) for key in ("train", "val")}
    labels = np.zeros((0 if batch_axis is None else 1, 1))
    place |= {"y_train": labels, "y_val": labels}
    arrays = split("train", "train", 1, 40) | split("test", "test", 1, 20)
    arrays |= {f"{letter}_val": arrays[f"{letter}_train"][:12] for letter in "xy"}
    # Also of sizes that are mixed, which is of no use here.
    for factor in ("1p000", "1p000-4p000"):
        sizes = f"outsize40-40_sctr{factor}_scte{factor}"
        write(folder / f"digits_tr40_vl12_te20_{sizes}.h5", **arrays)
    for factor in factors:
        stated = f"{factor:.3f}".replace(".", "p")
        training = f"_sctr{stated}" if factor < 1 else ""
        arrays = split("test", "test", factor, 30) | place
        name = f"digits_te30_outsize40-40{training}_scte{stated}.h5"
        write(folder / name, **arrays)
    return folder
