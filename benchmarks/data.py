"""Times the data pipelines. One command, a table.

    python benchmarks/data.py                                   # some three minutes

Each number is the median of several repeats, of random images as large as those of the
data set: what is read is in memory, or was just written and is likely to be. A rate is
that of short epochs, their start included, so that it is a bit higher in whole ones.

Two cores should make 1500 images a second of CIFAR-10, 400 of STL-10, three times what
a training step takes; and rescale the test set of CIFAR-10 in 10 seconds.
"""

import argparse
import os
import tempfile
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np
import tensorflow as tf
from measure import machine, median_seconds, print_header, print_row

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, rescaled, rescaled_arrays, rescaled_h5, write_h5
from keras_gdrn.models import ARCHITECTURES, architecture
from keras_gdrn.training import RECIPES
from keras_gdrn.training._batches import Batches, pipeline
from keras_gdrn.training._sources import as_source


def random_images(name: str, split: str, *, limit: int | None = None, **_) -> tuple:
    """Stands in for `original_arrays`."""
    info = DATASETS[name]
    count = min(limit or info.size(split), info.size(split))
    random = np.random.default_rng(0)
    images = random.integers(256, size=(count, *info.image_shape), dtype="uint8")
    return images, random.integers(info.classes, size=count, dtype="int32")


def augmented(name: str, data: tf.data.Dataset) -> tf.data.Dataset:
    """An epoch of training, as `fit` makes it."""
    recipe, any_shape = RECIPES[f"rescaled_{name}"], (None,) * 4
    batches = Batches(
        *(as_source(data), recipe.batch_size, any_shape, DATASETS[name].classes),
        augmentation=recipe.augmentation,
    )
    return pipeline(batches).take(batches.steps)


def benchmark_pipelines(count: int, repeats: int) -> None:
    """Images per second, from memory and from a folder of HDF5 files, by threads."""
    for name in ("cifar10", "stl10"):
        count = min(count, DATASETS[name].size("train"))
        with tempfile.TemporaryDirectory() as folder:
            write_h5(folder, name, ("train",), limit=count)
            sources = {
                "memory": rescaled(name, "train", limit=count),
                "HDF5": rescaled_h5(folder, "train"),
            }
            for source, data in sources.items():
                batches = augmented(name, data)
                for workers in sorted({1, 2, os.cpu_count() or 1}):
                    threads = tf.data.Options()
                    threads.threading.private_threadpool_size = workers
                    limited = batches.with_options(threads)
                    seconds = median_seconds(lambda of=limited: [*of], repeats)
                    what = f"training pipeline from {source}, {workers} threads"
                    print_row(what, name, f"{count / seconds:.0f} images/s")


def benchmark_test_sets(count: int, repeats: int) -> None:
    """Seconds to rescale test images to the smallest and largest size."""
    for factor in (0.5, 2.0):
        how = {"factor": factor, "limit": count}
        seconds = median_seconds(
            lambda how=how: rescaled_arrays("cifar10", "test", **how), repeats
        )
        print_row(f"{count} test images at {factor:g}", "cifar10", f"{seconds:.3g} s")


def benchmark_step(count: int, repeats: int) -> None:
    """One scale channel of an eighth of the preset's widths, which would take long."""
    recipe, preset = RECIPES["rescaled_cifar10"], ARCHITECTURES["rescaled_cifar10"]
    widths = [width // 8 for width in preset.widths]
    one = {"widths": widths, "sigma0": (1.0,), "scale_dropout": 0.0}
    model = architecture("rescaled_cifar10", **one)
    data = augmented("cifar10", rescaled("cifar10", "train", limit=count)).cache()
    model.compile(recipe.optimizer(len(data)), recipe.loss(), jit_compile=False)
    seconds = median_seconds(lambda: model.fit(data, shuffle=False, verbose=0), repeats)
    print_row(
        "training steps, an eighth wide", "cifar10", f"{count / seconds:.0f} images/s"
    )


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, count = parser.add_argument, positive(int)
    add("--repeats", type=count, default=3)
    add("--limit", type=count, default=2048, help="training images")
    add("--test-limit", type=count, default=10_000, help="test images")
    options = parser.parse_args()
    print(f"{machine()}; medians of {options.repeats} repeats")
    print_header("what", "random images as of", "measured")
    # Inside the pipelines, so that all the rest of them is measured.
    with mock.patch("keras_gdrn.data._rescaled.original_arrays", random_images):
        benchmark_pipelines(options.limit, options.repeats)
        benchmark_test_sets(options.test_limit, options.repeats)
        benchmark_step(min(options.limit, 900), options.repeats)


if __name__ == "__main__":
    main()
