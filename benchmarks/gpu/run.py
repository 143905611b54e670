"""Measures the package on a GPU: errors, time, memory. One command, tables.

    python benchmarks/gpu/run.py | tee gpu.md
    python benchmarks/gpu/run.py --only layers --sigmas 1 8
    python benchmarks/gpu/run.py --only speed --presets rescaled_cifar10 anywhere \
        --tasks training --networks "one pass of 3×3" GaussDerResNet --batch 32 128
    python benchmarks/gpu/run.py --quick                    # a minute on a CPU

It needs JAX and NumPy, not TensorFlow.

- Rounding errors against float64: of `layers` at σ from 0.5 to 32 (and of the paper's
  scheme) and of `networks`; in float32, TF32 (not on a CPU), bfloat16, float16.
- `speed`: training steps and predictions of each network, on windows, on whole maps and
  by the paper's scheme. Each is timed in turn with the 3×3 ResNet of the same widths,
  which gets an image for each scale channel. Ratios to it are medians over such pairs
  within one process, and can be compared between machines. The table also has memory,
  compile time, and operations of the traced program per second.

Each row is printed when it is measured; these options resume an interrupted run.
"""

import argparse
import dataclasses
import itertools
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
sys.path.append(str(Path(__file__).parents[1]))  # contenders, measure
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92")

import contenders
import jax
import keras
import measure
import numpy as np
from measure import print_header, print_row
from steps import PARTS, PRECISIONS, STEPS, Step, precision, rounding_errors

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import ARCHITECTURES, Architecture, gauss_der_resnet

LAYERS = {"GaussDerConv": GaussDerConv, "paper's scheme": contenders.PaperConv}
TOPICS = ("layers", "networks", "speed")
TASKS = ("training", "inference")
SIGMAS = tuple(2.0 ** (i / 2) for i in range(-2, 11))
TINY = dataclasses.replace(
    ARCHITECTURES["digits"], input_shape=(12, 12, 1), widths=(4,), sigma0=(0.7, 1.0)
)
# The network of most interest first.
PRESETS = {n: contenders.PRESETS[n] for n in ("rescaled_cifar10", *contenders.PRESETS)}
NAMES = list(contenders.network_contenders(TINY, batch=1))


def layers(sigmas: Sequence[float], size: int) -> dict[str, Callable]:
    """Functions that build a model of one layer, by its printed name."""
    return {
        f"{name}, σ = {sigma:.3g}": partial(layer_model, kind, size, sigma)
        for name, kind in LAYERS.items()
        for sigma in sigmas
    }


def networks(presets: Mapping[str, Architecture]) -> dict[str, Callable]:
    options = {
        name: {**dataclasses.asdict(settings), "scale_dropout": 0.0}
        for name, settings in presets.items()
    }
    return {name: partial(gauss_der_resnet, **of) for name, of in options.items()}


def report_errors(models: Mapping[str, Callable]) -> None:
    print_header("error of", "in", *PRECISIONS)
    for name, build in models.items():
        errors = rounding_errors(build, batch=4)
        for part in PARTS:
            print_row(name, part, *(f"{errors[at][part]:.1e}" for at in PRECISIONS))


def layer_model(kind: type, size: int, sigma: float) -> keras.Model:
    """A model of one layer: only inside a model does a layer cast its inputs."""
    image = keras.Input((size, size, size))
    return keras.Model(image, kind(size, sigma)(image))


def report_speed(what: str, settings, task: str, batch: int, options) -> None:
    """Prints a row for the step of each network, or why it failed.

    Each is measured in turn with the first of them, as soon as it is compiled.
    """
    contestants, first = contenders.network_contenders(settings, batch), {}
    names = options.networks
    if options.quick and task == "training":  # which takes long to compile
        names = names[:2]
    for name in names:
        build, count = contestants[name]
        try:
            step = step_of(build, count, settings, task, options.precision)
        except jax.errors.JaxRuntimeError as error:  # such as out of memory
            print_row(what, name, str(error).splitlines()[0], *["–"] * 5)
            continue
        first = first or {name: step}
        seconds = measure.interleaved(first | {name: step}, options.repeats)
        time = statistics.median(seconds[name]) / STEPS
        ratio = measure.ratios(seconds, *first)[name]
        rate = f"{step.operations / time / 1e12:.3g}" if step.operations else "–"
        print_row(
            *(what, name, str(count), f"{1000 * time:.4g} ms", f"{ratio:.3f}"),
            *(f"{step.memory / 2**20:.3g} MiB", f"{step.compiling:.3g} s", rate),
        )


def step_of(build: Callable, count: int, settings, task: str, at: str) -> Step:
    shape, labels = (count, *settings.input_shape), np.arange(count, dtype="int32")
    images = np.random.default_rng(0).random(shape, "float32")
    with precision(at):
        return Step(build(), task, images, labels % settings.classes)


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--only", nargs="+", default=TOPICS, choices=TOPICS)
    add("--sigmas", nargs="+", type=positive(float), default=SIGMAS, help="σ of layers")
    add("--presets", nargs="+", default=PRESETS, choices=PRESETS, metavar="NAME")
    batches = {"nargs": "+", "type": positive(int), "default": [32]}
    add("--batch", **batches, help="images of a network")
    add("--tasks", nargs="+", default=TASKS, choices=TASKS)
    add("--networks", nargs="+", default=NAMES, choices=NAMES, metavar="NAME")
    add("--repeats", type=positive(int), default=15, help="timings of each step")
    add("--precision", choices=PRECISIONS, default="bfloat16", help="for speed")
    add("--quick", action="store_true", help="tiny, to check that it runs")
    return parser.parse_args()


@errors_in_one_line()
def main() -> None:
    options = parsed_arguments()
    presets = {name: PRESETS[name] for name in options.presets}
    sigmas, size = options.sigmas, 64
    if options.quick:
        presets, sigmas, size = {"tiny": TINY}, (4.0,), 16
        options.repeats = 1
    print(f"{jax.devices()[0].device_kind}; {measure.machine()}")
    if "layers" in options.only:
        report_errors(layers(sigmas, size))
    if "networks" in options.only:
        report_errors(networks(presets))
    if "speed" in options.only:
        print(f"\nIn {options.precision}; ratios to {options.networks[0]}")
        columns = "images", "time", "ratio", "memory", "compiling", "TFLOP/s"
        print_header("of", "by", *columns)
        for name, settings in presets.items():
            for task, batch in itertools.product(options.tasks, options.batch):
                report_speed(f"{task} of {name}", settings, task, batch, options)


if __name__ == "__main__":
    main()
