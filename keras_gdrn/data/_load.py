"""The published images of a split, unchanged, in a fixed order."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_gdrn._checks import check_count
from keras_gdrn.data._datasets import Slice, dataset_info

Arrays = tuple[np.ndarray, np.ndarray]


def original_arrays(
    name: str,
    split: str,
    *,
    limit: int | None = None,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The published images of a split, unchanged, in the order of `rescaled`.

    The first images of a split are of all classes: TensorFlow Datasets shuffled the
    records when it wrote them, and the digits are permuted here.

    Args:
        name: A key of `DATASETS`.
        split: "train", "validation", "train+validation" or "test".
        limit: Take only the first `limit` images.
        data_dir, download: As for `rescaled`.

    Returns:
        Images `(N, H, W, C)`, uint8 from 0 to the `white` of `DATASETS`, and labels
        `(N,)`, int32.

    Raises:
        ValueError: If an argument is out of its range.
        FileNotFoundError: At once, if the data have not been prepared.

    Example:

    >>> original_arrays("digits", "test")[0].shape
    (797, 8, 8, 1)
    """
    info = dataset_info(name)
    check_count("limit", limit)
    slices = _first(info.slices(split), limit or info.size(split))
    if info.source == "sklearn":
        images, labels = _digits(slices)
    else:
        directory = prepared_directory(info.source, data_dir, download)
        images, labels = _read_tfds(directory, slices)
    return images, labels.astype("int32")


def _first(slices: tuple[Slice, ...], limit: int) -> list[Slice]:
    """The slices cut off after `limit` images."""
    kept: list[Slice] = []
    for source, start, stop in slices:
        if limit > 0:
            kept.append(Slice(source, start, min(stop, start + limit)))
            limit -= stop - start
    return kept


def _digits(slices: list[Slice]) -> Arrays:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    # They come writer by writer. NumPy promises never to change RandomState's streams.
    order = np.random.RandomState(0).permutation(len(labels))
    chosen = np.concatenate([order[start:stop] for _, start, stop in slices])
    return pixels[chosen].reshape(-1, 8, 8, 1).astype("uint8"), labels[chosen]


def _read_tfds(directory: Path, slices: list[Slice]) -> Arrays:
    import tensorflow_datasets as tfds

    # Not by name, which would need the builder's code and the network.
    builder: Any = tfds.builder_from_directory(directory)
    data = builder.as_dataset(
        split="+".join(f"{source}[{start}:{stop}]" for source, start, stop in slices),
        batch_size=-1,
        as_supervised=True,
        # One file after the other, so that the order is fixed.
        read_config=tfds.ReadConfig(interleave_cycle_length=1),
    )
    return tfds.as_numpy(data)


def prepared_directory(
    source: str, data_dir: str | os.PathLike | None = None, download: bool = False
) -> Path:
    """Where TensorFlow Datasets has written the newest version of `source`.

    Looks before TensorFlow Datasets is imported: without the data and a network, it
    would try for minutes before it failed.
    """
    default = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    root = Path(data_dir or default).expanduser().absolute()
    if download and not _versions(root / source):
        import tensorflow_datasets as tfds

        tfds.builder(source, data_dir=str(root)).download_and_prepare()
    versions = _versions(root / source)
    if not versions:
        raise FileNotFoundError(
            f"{source} has not been prepared in {root} (there is no "
            f"{source}/<version>/dataset_info.json). To download it into that "
            "directory, pass `download=True` or run\n"
            f'  python -c "import tensorflow_datasets as tfds; '
            f"tfds.load('{source}', data_dir={str(root)!r})\"\n"
            "If it is elsewhere, pass `data_dir` or set TFDS_DATA_DIR."
        )
    return versions[-1]


def _versions(directory: Path) -> list[Path]:
    """The complete versions below `directory`, the newest last."""
    complete = [path.parent for path in directory.glob("*/dataset_info.json")]
    numbered = [path for path in complete if path.name.replace(".", "").isdigit()]
    return sorted(numbered, key=lambda path: [int(n) for n in path.name.split(".")])
