"""Times the data pipelines against their targets for two cores. One command, a table.

    python benchmarks/data.py --data-dir ~/tensorflow_datasets    # some three minutes

Each number is the median of several repeats. A rate is that of short epochs, their
start included, so that it is a bit higher in whole ones. Files of HDF5 were just
written and are likely to be in the memory of the system. A data set that TensorFlow
Datasets has not prepared is replaced by random images of its size.
"""

import argparse
import contextlib
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
from keras_gdrn.data import (
    DATASETS,
    original_arrays,
    rescaled,
    rescaled_arrays,
    rescaled_h5,
    write_h5,
)
from keras_gdrn.models import ARCHITECTURES, architecture
from keras_gdrn.training import RECIPES
from keras_gdrn.training._batches import Batches, pipeline
from keras_gdrn.training._sources import as_source

# Images per second.
TARGETS = {"cifar10": 1500, "stl10": 400}
ONE_CHANNEL = {"sigma0": (1.0,), "scale_dropout": 0.0}


def is_prepared(name: str, data_dir: str | None) -> bool:
    try:
        original_arrays(name, "test", limit=1, data_dir=data_dir)
    except FileNotFoundError:
        return False
    return True


def random_images(name: str, split: str, *, limit: int | None = None, **_) -> tuple:
    """Stands in for `original_arrays`, with as many images of the same size."""
    info = DATASETS[name]
    count = min(limit or info.size(split), info.size(split))
    random = np.random.default_rng(0)
    images = random.integers(256, size=(count, *info.image_shape), dtype="uint8")
    return images, random.integers(info.classes, size=count, dtype="int32")


def images_of(name: str, data_dir: str | None) -> contextlib.AbstractContextManager:
    """A context in which data are read or, where there are none, made up."""
    if is_prepared(name, data_dir):
        return contextlib.nullcontext()
    # Inside the pipelines, so that all the rest of them is measured.
    return mock.patch("keras_gdrn.data._rescaled.original_arrays", random_images)


def kind_of(name: str, data_dir: str | None) -> str:
    return name if is_prepared(name, data_dir) else f"random images for {name}"


def described(name: str, data_dir: str | None) -> str:
    canvas = DATASETS[name].canvas
    batch_size = RECIPES[f"rescaled_{name}"].batch_size
    return f"{kind_of(name, data_dir)}, {canvas}×{canvas}, batch {batch_size}"


def augmented(name: str, data: tf.data.Dataset) -> tf.data.Dataset:
    """An epoch of training, as `fit` makes it."""
    recipe, any_shape = RECIPES[f"rescaled_{name}"], (None,) * 4
    batches = Batches(
        *(as_source(data), recipe.batch_size, any_shape, DATASETS[name].classes),
        augmentation=recipe.augmentation,
    )
    return pipeline(batches).take(batches.steps)


def benchmark_pipelines(arguments) -> None:
    """Images per second, from memory and from a folder of HDF5 files."""
    options = {"limit": arguments.limit, "data_dir": arguments.data_dir}
    for name, target in TARGETS.items():
        images = min(arguments.limit, DATASETS[name].size("train"))
        shuffled = {
            "batch_size": RECIPES[f"rescaled_{name}"].batch_size,
            "shuffle": True,
        }
        with tempfile.TemporaryDirectory() as folder:
            with images_of(name, arguments.data_dir):
                write_h5(folder, name, ("train",), **options)
                memory = rescaled(name, "train", **shuffled, **options)
            files = rescaled_h5(folder, "train", **shuffled)
            for source, data in {"memory": memory, "HDF5": files}.items():
                batches = augmented(name, data)
                seconds = seconds_of_an_epoch(batches, arguments.repeats)
                print_row(
                    f"training pipeline from {source}",
                    described(name, arguments.data_dir),
                    f"{images / seconds:.0f} images/s",
                    f"≥ {target} images/s",
                )


def seconds_of_an_epoch(batches: tf.data.Dataset, repeats: int) -> float:
    def epoch() -> None:
        for _ in batches:
            pass

    return measure.median_seconds(epoch, repeats)


def benchmark_test_sets(arguments) -> None:
    """Seconds to read and rescale the test images at the smallest and largest size."""
    options = {"limit": arguments.test_limit, "data_dir": arguments.data_dir}
    with images_of("cifar10", arguments.data_dir):
        for factor in (0.5, 2.0):
            seconds = measure.median_seconds(
                lambda at=factor: rescaled_arrays("cifar10", "test", at, **options),
                arguments.repeats,
            )
            print_row(
                f"test set at factor {factor:g}",
                f"{kind_of('cifar10', arguments.data_dir)}, "
                f"{arguments.test_limit} images",
                f"{seconds:.3g} s",
                "≤ 10 s",
            )


def benchmark_workers(arguments) -> None:
    """Images per second by the number of threads, over those of a training step."""
    recipe, preset = RECIPES["rescaled_cifar10"], ARCHITECTURES["rescaled_cifar10"]
    images = recipe.batch_size * arguments.batches
    options = {"limit": images, "data_dir": arguments.data_dir}
    with images_of("cifar10", arguments.data_dir):
        pipeline = augmented("cifar10", rescaled("cifar10", "train", **options))
    memory = pipeline.take(1).cache().repeat(arguments.batches)
    widths = [width // arguments.narrower for width in preset.widths]
    model = architecture("rescaled_cifar10", widths=widths, **ONE_CHANNEL)
    model.compile(recipe.optimizer(arguments.batches), recipe.loss(), jit_compile=False)
    step = measure.median_seconds(
        lambda: model.fit(memory, shuffle=False, verbose=0), arguments.repeats
    )
    print_row(
        "training step",
        f"{described('cifar10', arguments.data_dir)}; one scale channel of "
        f"1/{arguments.narrower} of the widths",
        f"{images / step:.0f} images/s",
        "–",
    )
    for workers in sorted({1, 2, os.cpu_count() or 1}):
        threads = tf.data.Options()
        threads.threading.private_threadpool_size = workers
        data = pipeline.with_options(threads)
        seconds = seconds_of_an_epoch(data, arguments.repeats)
        print_row(
            f"training pipeline, {workers} workers",
            described("cifar10", arguments.data_dir),
            f"{images / seconds:.0f} images/s, {step / seconds:.1f} × the step",
            "≥ 3 × the step",
        )


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--repeats", type=positive(int), default=3)
    parser.add_argument(
        "--limit", type=positive(int), default=2048, help="training images"
    )
    parser.add_argument(
        "--test-limit", type=positive(int), default=10_000, help="test images"
    )
    parser.add_argument(
        "--batches", type=positive(int), default=20, help="steps of an epoch"
    )
    parser.add_argument(
        "--narrower",
        type=positive(int),
        default=8,
        help="what the widths of the preset are divided by: 1 takes minutes",
    )
    return parser.parse_args()


@errors_in_one_line()
def main() -> None:
    arguments = parsed_arguments()
    print(
        f"{machine()}; {arguments.limit} training images; "
        f"medians of {arguments.repeats} repeats"
    )
    print_header("what", "data", "measured", "target")
    benchmark_pipelines(arguments)
    benchmark_test_sets(arguments)
    benchmark_workers(arguments)


if __name__ == "__main__":
    main()
