"""The training and validation images of a search."""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_gdrn.data import DATASETS, rescaled, rescaled_arrays
from keras_gdrn.training import Stage


def training(options: argparse.Namespace) -> Callable[[Stage], Any]:
    """A function that makes training images at size factor 1, in a trial's process.

    They exclude those that `validation` takes from the same split.
    """
    split, first, _ = _held_out(options)
    there = first if split == "train" else DATASETS[options.dataset].size("train")
    limit = min(options.limit or there, there)

    where = {"canvas": options.canvas, "data_dir": options.data_dir}
    return lambda stage: rescaled(options.dataset, "train", limit=limit, **where)


def validation(options: argparse.Namespace) -> dict[float, tuple[np.ndarray, ...]]:
    """Validation images and labels at each size factor; never test images.

    It runs before `training`, and downloads the whole data set if asked to.
    """
    split, first, end = _held_out(options)
    where = {"data_dir": options.data_dir, "download": options.download}
    where["canvas"] = options.canvas
    found = {}
    for factor in options.factors:
        images, labels = rescaled_arrays(
            options.dataset, split, factor, limit=end, **where
        )
        found[factor] = images[first:].copy(), labels[first:]
    return found


def _held_out(options: argparse.Namespace) -> tuple[str, int, int]:
    """The split of the validation images, and the indices of the first and the end.

    The validation split or, if there is none, the last fifth of the training part.
    """
    info = DATASETS[options.dataset]
    split, first = "validation", 0
    if not info.validation:
        split, first = "train", info.size("train") * 4 // 5
    return split, first, min(first + options.validation_limit, info.size(split))
