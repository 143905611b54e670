"""Times the data pipelines against their targets for two cores. One command, a table.

    python benchmarks/data.py                                   # some three minutes

Each number is the median of several repeats, of random images as large as those of the
data set: what is read is in memory, or was just written and is likely to be. A rate is
that of short epochs, their start included, so that it is a bit higher in whole ones.
"""

import argparse
import os
import tempfile
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import measure
import numpy as np
import tensorflow as tf
from measure import machine, print_header, print_row

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, rescaled, rescaled_arrays, rescaled_h5, write_h5
from keras_gdrn.models import ARCHITECTURES, architecture
from keras_gdrn.training import RECIPES
from keras_gdrn.training._batches import Batches, pipeline
from keras_gdrn.training._sources import as_source

# Images per second.
TARGETS = {"cifar10": 1500, "stl10": 400}


def random_images(name: str, split: str, *, limit: int | None = None, **_) -> tuple:
    """Stands in for `original_arrays`."""
    info = DATASETS[name]
    count = min(limit or info.size(split), info.size(split))
    random = np.random.default_rng(0)
    images = random.integers(256, size=(count, *info.image_shape), dtype="uint8")
    return images, random.integers(info.classes, size=count, dtype="int32")


def described(name: str) -> str:
    side, batch_size = DATASETS[name].canvas, RECIPES[f"rescaled_{name}"].batch_size
    return f"{name}, {side}×{side}, batch {batch_size}"


def augmented(name: str, data: tf.data.Dataset) -> tf.data.Dataset:
    """An epoch of training, as `fit` makes it."""
    recipe, any_shape = RECIPES[f"rescaled_{name}"], (None,) * 4
    batches = Batches(
        *(as_source(data), recipe.batch_size, any_shape, DATASETS[name].classes),
        augmentation=recipe.augmentation,
    )
    return pipeline(batches).take(batches.steps)


def seconds_of_an_epoch(batches: tf.data.Dataset, repeats: int) -> float:
    return measure.median_seconds(lambda: [None for _ in batches], repeats)


def benchmark_pipelines(arguments) -> None:
    """Images per second, from memory and from a folder of HDF5 files."""
    for name, target in TARGETS.items():
        images = min(arguments.limit, DATASETS[name].size("train"))
        batch_size = RECIPES[f"rescaled_{name}"].batch_size
        shuffled = {"batch_size": batch_size, "shuffle": True}
        with tempfile.TemporaryDirectory() as folder:
            write_h5(folder, name, ("train",), limit=images)
            sources = {
                "memory": rescaled(name, "train", limit=images, **shuffled),
                "HDF5": rescaled_h5(folder, "train", **shuffled),
            }
            for source, data in sources.items():
                batches = augmented(name, data)
                rate = images / seconds_of_an_epoch(batches, arguments.repeats)
                what = f"training pipeline from {source}"
                measured, least = f"{rate:.0f} images/s", f"≥ {target} images/s"
                print_row(what, described(name), measured, least)


def benchmark_test_sets(arguments) -> None:
    """Seconds to rescale the test images to the smallest and largest size."""
    for factor in (0.5, 2.0):
        seconds = measure.median_seconds(
            lambda at=factor: rescaled_arrays(
                "cifar10", "test", at, limit=arguments.test_limit
            ),
            arguments.repeats,
        )
        what = f"test set at factor {factor:g}"
        data = f"cifar10, {arguments.test_limit} images"
        print_row(what, data, f"{seconds:.3g} s", "≤ 10 s")


def benchmark_workers(arguments) -> None:
    """Images per second by the number of threads, over those of a training step."""
    recipe = RECIPES["rescaled_cifar10"]
    images = recipe.batch_size * arguments.batches
    batches = augmented("cifar10", rescaled("cifar10", "train", limit=images))
    memory = batches.take(1).cache().repeat(arguments.batches)
    widths = ARCHITECTURES["rescaled_cifar10"].widths
    widths = [width // arguments.narrower for width in widths]
    one_channel = {"widths": widths, "sigma0": (1.0,), "scale_dropout": 0.0}
    model = architecture("rescaled_cifar10", **one_channel)
    model.compile(recipe.optimizer(arguments.batches), recipe.loss(), jit_compile=False)
    step = measure.median_seconds(
        lambda: model.fit(memory, shuffle=False, verbose=0), arguments.repeats
    )
    what = f"one scale channel of 1/{arguments.narrower} of the widths"
    data = f"{described('cifar10')}; {what}"
    print_row("training step", data, f"{images / step:.0f} images/s", "–")
    for workers in sorted({1, 2, os.cpu_count() or 1}):
        threads = tf.data.Options()
        threads.threading.private_threadpool_size = workers
        data = batches.with_options(threads)
        seconds = seconds_of_an_epoch(data, arguments.repeats)
        measured = f"{images / seconds:.0f} images/s, {step / seconds:.1f} × the step"
        what = f"training pipeline, {workers} workers"
        print_row(what, described("cifar10"), measured, "≥ 3 × the step")


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, count = parser.add_argument, positive(int)
    add("--repeats", type=count, default=3)
    add("--limit", type=count, default=2048, help="training images")
    add("--test-limit", type=count, default=10_000, help="test images")
    add("--batches", type=count, default=20, help="steps of an epoch")
    narrower = "what the widths of the preset are divided by: 1 takes minutes"
    add("--narrower", type=count, default=8, help=narrower)
    arguments = parser.parse_args()
    medians = f"medians of {arguments.repeats} repeats"
    print(f"{machine()}; {arguments.limit} training images; {medians}")
    print_header("what", "random images as of", "measured", "target")
    # Inside the pipelines, so that all the rest of them is measured.
    with mock.patch("keras_gdrn.data._rescaled.original_arrays", random_images):
        benchmark_pipelines(arguments)
        benchmark_test_sets(arguments)
        benchmark_workers(arguments)


if __name__ == "__main__":
    main()
