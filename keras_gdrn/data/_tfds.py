"""The records of TensorFlow Datasets."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_gdrn.data._datasets import Slice


def read_tfds(directory: Path, slices: list[Slice]) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of some slices, one after the other."""
    split = "+".join(f"{source}[{start}:{stop}]" for source, start, stop in slices)
    return _read(directory, split, batch_size=-1, as_supervised=True)


def read_encoded(directory: Path, part: str) -> tuple[list[bytes], np.ndarray]:
    """Images of a published part as they are stored, such as PNG; their labels."""
    tfds = _library()
    decoders = {"image": tfds.decode.SkipDecoding()}
    examples = list(_read(directory, part, decoders=decoders))
    labels = np.array([example["label"] for example in examples])
    return [example["image"] for example in examples], labels


def _read(directory: Path, split: str, **options: Any) -> Any:
    tfds = _library()
    # Not by name, which would need the builder's code and the network.
    builder: Any = tfds.builder_from_directory(directory)
    # One file after the other, so that the order is fixed.
    one = tfds.ReadConfig(interleave_cycle_length=1)
    return tfds.as_numpy(builder.as_dataset(split=split, read_config=one, **options))


def _library() -> Any:
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise ImportError(
            "Published images are read by TensorFlow Datasets: `pip install tensorflow "
            "tensorflow-datasets`, or use a file of `pack`"
        ) from error
    return tensorflow_datasets


def data_root(data_dir: str | os.PathLike | None) -> Path:
    """The directory of the argument, of the environment, or the default."""
    default = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    return Path(data_dir or default).expanduser().absolute()


def prepared_directory(
    source: str, data_dir: str | os.PathLike | None = None, download: bool = False
) -> Path:
    """Where TensorFlow Datasets has written the newest version of `source`.

    Looks before TensorFlow Datasets is imported: without the data and a network, it
    would try for minutes before it failed.
    """
    root = data_root(data_dir)
    if download and not _versions(root / source):
        _library().builder(source, data_dir=str(root)).download_and_prepare()
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
