"""Times the package against what else one could do. One command, tables with ratios.

    python benchmarks/run.py                      # everything, about half an hour
    python benchmarks/run.py layers --xla
    python benchmarks/run.py network --preset rescaled_fashion_mnist --batch 4
    python benchmarks/run.py network --batch 4 --inference

Ratios are medians over interleaved pairs within one process and can be compared between
machines; seconds cannot. Peak memory is that of a process that runs nothing else,
less what it holds before the first step.
"""

import argparse
import dataclasses
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import contenders
import keras
import measure
import numpy as np
from measure import machine, print_header, print_row

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import ARCHITECTURES

# Dense kernels take minutes beyond this scale.
DENSE_UP_TO = 2.0
REFERENCE = "Conv2D 3×3"
ONE = "one pass of it"
# The network of STIR, which looks for objects anywhere, and all others by name.
PRESETS = {
    "anywhere": dataclasses.replace(
        ARCHITECTURES["digits"],
        input_shape=(64, 64, 1),
        classes=36,
        widths=(12, 16, 24, 32),
        ratio=1.35,
        sigma0=tuple(2 ** (k / 2) for k in range(-2, 4)),
        spatial_selection="max",
    ),
    **ARCHITECTURES,
}
# The same of every preset and batch.
NETWORKS = list(contenders.network_contenders(ARCHITECTURES["digits"], batch=1))


def layer_contenders(width: int, sigma: float) -> dict:
    layers = {
        REFERENCE: contenders.plain_conv(width, sigma),
        "GaussDerConv": GaussDerConv(width, sigma),
        "paper's scheme": contenders.PaperConv(width, sigma),
    }
    if sigma <= DENSE_UP_TO:
        layers["dense kernels"] = contenders.DenseConv(width, sigma)
    return layers


def networks(arguments) -> dict:
    return contenders.network_contenders(PRESETS[arguments.preset], arguments.batch)


def network_step(name: str, arguments):
    build, images = networks(arguments)[name]
    begin = time.perf_counter()
    model = build()
    construction = time.perf_counter() - begin
    shape = (images, *model.input_shape[1:])
    data = np.random.default_rng(0).random(shape, dtype="float32")
    if arguments.inference:
        model.compile(jit_compile=arguments.xla)
        return (lambda: model.predict_on_batch(data)), construction
    labels = np.arange(images) % 10
    return measure.model_step(model, data, labels, arguments.xla), construction


def benchmark_layers(arguments) -> None:
    print_header("layer", "σ", REFERENCE, "GaussDerConv", "paper", "dense")
    for width, size in arguments.shapes:
        shape = (arguments.batch, size, size, width)
        for sigma in arguments.sigmas:
            keras.backend.clear_session()
            layers = layer_contenders(width, sigma)
            steps = {
                name: measure.layer_step(
                    layer, shape, arguments.xla, arguments.inference
                )
                for name, layer in layers.items()
            }
            seconds = measure.interleaved(steps, arguments.repeats)
            ratio = measure.ratios(seconds, REFERENCE)
            reference = np.median(seconds[REFERENCE])
            cells = [
                f"{ratio[name]:.2f}" if name in ratio else "–"
                for name in ("GaussDerConv", "paper's scheme", "dense kernels")
            ]
            row = [
                f"{width}→{width}, {size}×{size}",
                f"{sigma:g}",
                f"{reference:.3f} s",
            ]
            print_row(*row, *cells)


def benchmark_network(arguments) -> None:
    names = arguments.names or NETWORKS
    own = {name: in_a_process(name, arguments) for name in names}
    steps = {name: network_step(name, arguments)[0] for name in names}
    seconds = measure.interleaved(steps, arguments.repeats)
    ratio = measure.ratios(seconds, names[0])
    one = measure.ratios(seconds, ONE) if ONE in names else {}
    print_header(
        *("network", "step", "ratio", "to one pass"),
        *("construction", "first step", "peak memory"),
    )
    for name in names:
        result = own[name]
        print_row(
            name,
            f"{np.median(seconds[name]):.2f} s",
            f"{ratio[name]:.3f}",
            f"{one[name]:.2f}" if one else "–",
            f"{result['construction']:.2f} s",
            f"{result['first_step']:.1f} s",
            f"{result['memory']:.2f} GB",
        )


def in_a_process(name: str, arguments) -> dict:
    options = ["--batch", str(arguments.batch), "--preset", arguments.preset]
    options += ["--xla"] * arguments.xla + ["--inference"] * arguments.inference
    return measure.in_a_process("one", "--name", name, *options)


def benchmark_one(arguments) -> None:
    """First step, construction and memory of one network, as one line of JSON."""
    before = measure.peak_gigabytes()
    step, construction = network_step(arguments.name, arguments)
    first = measure.timed(step)
    measure.timed(step)
    memory = measure.peak_gigabytes() - before
    print(
        json.dumps(
            {"construction": construction, "first_step": first, "memory": memory}
        )
    )


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", nargs="?", default="all", choices=["all", "layers", "network", "one"]
    )
    parser.add_argument("--xla", action="store_true", help="compile with XLA")
    parser.add_argument("--preset", choices=PRESETS, default="rescaled_cifar10")
    parser.add_argument(
        "--inference", action="store_true", help="predict instead of train"
    )
    parser.add_argument(
        "--names",
        nargs="+",
        choices=NETWORKS,
        help="only these networks; ratios to the first",
    )
    parser.add_argument("--batch", type=positive(int), default=8)
    parser.add_argument("--repeats", type=positive(int), default=5)
    parser.add_argument(
        "--sigmas", type=positive(float), nargs="+", default=[0.5, 1, 2, 3, 6, 12]
    )
    parser.add_argument("--widths", type=positive(int), nargs="+", default=[64, 192])
    parser.add_argument("--size", type=positive(int), default=64)
    parser.add_argument("--name", choices=NETWORKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.what == "one" and not arguments.name:
        parser.error(f"one network is named by --name, one of {NETWORKS}")
    arguments.shapes = [(width, arguments.size) for width in arguments.widths]
    return arguments


@errors_in_one_line()
def main() -> None:
    arguments = parsed_arguments()
    if arguments.what == "one":
        return benchmark_one(arguments)
    mode = "XLA" if arguments.xla else "no XLA"
    what = "predictions" if arguments.inference else "training steps"
    print(
        f"{machine()}; {mode}; batch {arguments.batch}; medians of "
        f"{arguments.repeats} interleaved {what}"
    )
    if arguments.what in ("all", "layers"):
        benchmark_layers(arguments)
    if arguments.what in ("all", "network"):
        benchmark_network(arguments)


if __name__ == "__main__":
    main()
