"""Measures the package on a GPU: errors, time, memory. One command, tables.

    python benchmarks/gpu/run.py | tee gpu.md
    python benchmarks/gpu/run.py --only errors
    python benchmarks/gpu/run.py --only speed --presets rescaled_cifar10
    python benchmarks/gpu/run.py --quick                    # a minute on a CPU

It stands on JAX and NumPy; TensorFlow need not be there. Not measured on a GPU yet.

- `errors` of rounding, against float64: of layers at σ from 0.5 to 32 (and of the
  paper's scheme) and of networks; in float32, TF32 (not on a CPU), bfloat16, float16.
- `speed`: training steps and predictions of each network, on windows and on whole maps,
  in turn with the 3×3 ResNet of the same widths, which is given as many images as there
  are scale channels, and with the paper's scheme. Ratios to the first are medians over
  such pairs within one process, and can be compared between machines. With them the
  memory, what compiling took, and the operations of the traced program in a second.

Each row is printed when it is measured; by `--only` and `--presets` one goes on.
"""

import argparse
import dataclasses
import os
import statistics
import sys
from collections.abc import Callable, Mapping
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
SIGMAS = tuple(2.0 ** (i / 2) for i in range(-2, 11))
TINY = dataclasses.replace(
    ARCHITECTURES["digits"], input_shape=(12, 12, 1), widths=(4,), sigma0=(0.7, 1.0)
)
# The network of most interest first.
PRESETS = {n: ARCHITECTURES[n] for n in ("rescaled_cifar10", *ARCHITECTURES)}


def report_errors(presets: Mapping[str, Architecture], quick: bool) -> None:
    """Of each layer and each network."""
    size, sigmas = (16, SIGMAS[4:5]) if quick else (64, SIGMAS)
    models = {
        f"{name}, σ = {sigma:.3g}": partial(layer_model, kind, size, sigma)
        for name, kind in LAYERS.items()
        for sigma in sigmas
    }
    for name, settings in presets.items():
        options = {**dataclasses.asdict(settings), "scale_dropout": 0.0}
        models[name] = partial(gauss_der_resnet, **options)
    print_header("error of", "in", *PRECISIONS)
    for name, build in models.items():
        errors = rounding_errors(build, batch=4)
        for part in PARTS:
            print_row(name, part, *(f"{errors[at][part]:.1e}" for at in PRECISIONS))


def layer_model(kind: type, size: int, sigma: float) -> keras.Model:
    """A model, as a layer casts its inputs only where it is called by one."""
    image = keras.Input((size, size, size))
    return keras.Model(image, kind(size, sigma)(image))


def report_speed(what: str, settings, task: str, options: argparse.Namespace) -> None:
    """A row for the step of each network, or why the device could not."""
    steps, networks = {}, contenders.network_contenders(settings, options.batch)
    for name, (build, count) in networks.items():
        try:
            steps[name] = step_of(build, count, settings, task, options.precision)
        except jax.errors.JaxRuntimeError as error:  # such as out of memory
            print_row(what, name, str(error).splitlines()[0], *["–"] * 5)
    seconds = measure.interleaved(steps, 1 if options.quick else 15)
    reference = next(iter(networks))
    ratios = measure.ratios(seconds, reference) if reference in steps else {}
    for name, step in steps.items():
        time = statistics.median(seconds[name]) / STEPS
        print_row(
            *(what, name, str(len(step.data[0])), f"{1000 * time:.4g} ms"),
            *(f"{ratios.get(name, np.nan):.3f}", f"{step.memory / 2**20:.3g} MiB"),
            *(f"{step.compiling:.3g} s", f"{step.operations / time / 1e12:.3g}"),
        )


def step_of(build: Callable, count: int, settings, task: str, at: str) -> Step:
    shape, labels = (count, *settings.input_shape), np.arange(count, dtype="int32")
    images = np.random.default_rng(0).random(shape, "float32")
    with precision(at):
        return Step(build(), task, images, labels % settings.classes)


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--only", nargs="+", default=("errors", "speed"), choices=("errors", "speed"))
    add("--presets", nargs="+", default=PRESETS, choices=PRESETS, metavar="NAME")
    add("--batch", type=positive(int), default=32, help="images for a network")
    add("--precision", choices=PRECISIONS, default="bfloat16", help="of speed")
    add("--quick", action="store_true", help="tiny, to see that it runs")
    return parser.parse_args()


@errors_in_one_line()
def main() -> None:
    options = parsed_arguments()
    presets = {name: PRESETS[name] for name in options.presets}
    if options.quick:
        presets = {"tiny": TINY}
    print(f"{jax.devices()[0].device_kind}; {measure.machine()}")
    if "errors" in options.only:
        report_errors(presets, options.quick)
    if "speed" in options.only:
        print(f"\nIn {options.precision}, {options.batch} images for a network")
        columns = "images", "time", "ratio", "memory", "compiling", "TFLOP/s"
        print_header("of", "by", *columns)
        for name, settings in presets.items():
            for task in ("training", "inference"):
                report_speed(f"{task} of {name}", settings, task, options)


if __name__ == "__main__":
    main()
