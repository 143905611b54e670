"""MNIST-Scale: digits of random sizes, the field's common test of scale."""

import os

import numpy as np

from keras_gdrn._checks import check_choice, check_count, check_number
from keras_gdrn.data._imresize import rescale
from keras_gdrn.data._load import original_arrays

# Which of the permuted digits make up a split; the last 8000 stay unused.
_SPLITS = {"train": (0, 10000), "validation": (10000, 12000), "test": (12000, 62000)}
_SIDE, _SMALLEST, _DIGITS = 28, 0.3, 70000


def mnist_scale(
    split: str,
    realization: int = 0,
    *,
    limit: int | None = None,
    data_dir: str | os.PathLike | None = None,
    download: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Digits of MNIST at random sizes, in the center of 28×28 pixels.

    10 000 images to train on, 2000 for validation and 50 000 to test on, drawn from all
    70 000. Each is resized by `imresize` with a factor that is uniform in [0.3, 1], and
    surrounded by zeros.

    Source: the protocol of Sosnovik, Szmaja and Smeulders (2020), "Scale-equivariant
    steerable networks", which reports the mean of six realizations. Departure: their
    random draws are not published as files, and they resize by another library.

    Args:
        split: "train", "validation" or "test".
        realization: Seed of the choice of digits and of their sizes, 0 or more.
        limit: Take only the first `limit` images.
        data_dir, download: As for `rescaled`.

    Returns:
        Images `(N, 28, 28, 1)`, float32 in [0, 1], and labels `(N,)`, int32.

    Raises:
        ValueError: If an argument is out of its range.
        FileNotFoundError: At once, if the data have not been prepared.

    Example:

    >>> images, labels = mnist_scale("train")
    >>> images.shape
    (10000, 28, 28, 1)
    """
    check_choice("split", split, tuple(_SPLITS))
    check_number("realization", realization, whole=True)
    check_count("limit", limit)
    random = np.random.RandomState(realization)
    order = random.permutation(_DIGITS)
    factors = random.uniform(_SMALLEST, 1.0, _DIGITS)
    start, stop = _SPLITS[split]
    chosen = order[start:stop][:limit]
    where = {"data_dir": data_dir, "download": download}
    parts = (original_arrays("mnist", s, **where) for s in ("train+validation", "test"))
    digits, labels = map(np.concatenate, zip(*parts, strict=True))
    images = np.stack(
        [
            rescale(digits[n], factor, _SIDE, "zero")
            for n, factor in zip(chosen, factors[start:stop], strict=False)
        ]
    )
    return np.clip(images / 255, 0, 1, dtype="float32"), labels[chosen]
