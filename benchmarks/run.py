"""Times the package against alternatives. One command, tables with ratios.

    python benchmarks/run.py                      # everything, about half an hour
    python benchmarks/run.py layers --xla
    python benchmarks/run.py network --preset rescaled_fashion_mnist --batch 4
    python benchmarks/run.py network --batch 4 --inference
    python benchmarks/run.py network --record results/speed/mine.json
    python benchmarks/run.py one --name GaussDerResNet     # memory, and the first step
    KERAS_BACKEND=jax python benchmarks/run.py one --name GaussDerResNet

Ratios are medians over interleaved pairs within one process and can be compared between
machines; seconds cannot. Layers are timed on TensorFlow. Peak memory is that of a
process that runs nothing else, minus what it holds before the network is built.
"""

import argparse
import datetime
import json
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import contenders
import keras
import measure
import numpy as np
from measure import machine, print_header, print_row

from keras_gdrn.commands import errors_in_one_line, positive, write_text
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import ARCHITECTURES

LAYERS = {
    "Conv2D 3×3": contenders.plain_conv,
    "GaussDerConv": GaussDerConv,
    "paper's scheme": contenders.PaperConv,
    "dense kernels": contenders.DenseConv,
}
DENSE_UP_TO = 2.0  # they take minutes at coarser scales
# The same names for every preset and batch.
NETWORKS = list(contenders.network_contenders(ARCHITECTURES["digits"], batch=1))


def network_step(name: str, arguments):
    preset = contenders.PRESETS[arguments.preset]
    build, images = contenders.network_contenders(preset, arguments.batch)[name]
    model = build()
    shape = (images, *model.input_shape[1:])
    data = np.random.default_rng(0).random(shape, dtype="float32")
    if arguments.inference:
        model.compile(jit_compile=arguments.xla)
        return lambda: model.predict_on_batch(data)
    return measure.model_step(model, data, np.arange(images) % 10, arguments.xla)


def benchmark_layers(arguments) -> None:
    reference, *others = LAYERS
    print_header("layer", "σ", reference, *others)
    size = arguments.size
    for width in arguments.widths:
        shape = (arguments.batch, size, size, width)
        for sigma in arguments.sigmas:
            keras.backend.clear_session()
            steps = {
                name: measure.layer_step(
                    kind(width, sigma), shape, arguments.xla, arguments.inference
                )
                for name, kind in LAYERS.items()
                if name != "dense kernels" or sigma <= DENSE_UP_TO
            }
            seconds = measure.interleaved(steps, arguments.repeats)
            ratio = measure.ratios(seconds, reference)
            median = f"{np.median(seconds[reference]):.3f} s"
            what = f"{width}→{width}, {size}×{size}"
            cells = (f"{ratio[x]:.2f}" if x in ratio else "–" for x in others)
            print_row(what, f"{sigma:g}", median, *cells)


def benchmark_network(arguments) -> None:
    names = arguments.name or NETWORKS
    steps = {name: network_step(name, arguments) for name in names}
    seconds = measure.interleaved(steps, arguments.repeats)
    ratio = measure.ratios(seconds, names[0])
    one = measure.ratios(seconds, contenders.ONE) if contenders.ONE in names else {}
    print_header("network", "step", "ratio", "to one pass")
    for name in names:
        to_one = f"{one[name]:.2f}" if one else "–"
        step = f"{np.median(seconds[name]):.2f} s"
        print_row(name, step, f"{ratio[name]:.3f}", to_one)
    if arguments.record:
        found = {name: round(float(ratio[name]), 4) for name in names}
        record(found, seconds[names[0]], arguments)


def record(ratio: dict[str, float], reference: list[float], arguments) -> None:
    """Writes ratios to the first network, and what else tells how they came about."""
    options = ("preset", "batch", "inference", "xla", "repeats")
    row = {name: getattr(arguments, name) for name in options}
    # As TensorFlow decides by the CPU, unless it is told.
    row["onednn"] = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default") == "1"
    row |= {"ratios": ratio, "seconds": round(float(np.median(reference)), 3)}
    row |= {"machine": machine(), "date": datetime.date.today().isoformat()}
    arguments.record.parent.mkdir(parents=True, exist_ok=True)
    write_text(arguments.record, json.dumps(row, indent=1, ensure_ascii=False) + "\n")


def benchmark_one(arguments) -> None:
    """Construction, first step and memory, which need a separate process."""
    (name,), before = arguments.name, measure.peak_gigabytes()
    begin = time.perf_counter()
    step = network_step(name, arguments)
    construction, first = time.perf_counter() - begin, measure.timed(step)
    later = np.median([measure.timed(step) for _ in range(arguments.repeats)])
    memory = measure.peak_gigabytes() - before
    print_header("network", "construction", "first step", "later steps", "peak memory")
    seconds = f"{construction:.2f} s", f"{first:.1f} s", f"{later:.2f} s"
    print_row(name, *seconds, f"{memory:.2f} GB")


PARTS = {
    "all": (benchmark_layers, benchmark_network),
    "layers": (benchmark_layers,),
    "network": (benchmark_network,),
    "one": (benchmark_one,),
}


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, count = parser.add_argument, positive(int)
    add("what", nargs="?", default="all", choices=PARTS)
    add("--xla", action="store_true", help="compile with XLA")
    add("--preset", choices=contenders.PRESETS, default="rescaled_cifar10")
    add("--inference", action="store_true", help="predict instead of train")
    names = {"nargs": "+", "choices": NETWORKS}
    add("--name", **names, help="only these networks; ratios to the first")
    add("--batch", type=count, default=8)
    add("--repeats", type=count, default=5)
    add("--record", type=Path, help="file for the ratios of networks")
    sigmas = {"type": positive(float), "default": [0.5, 1, 2, 3, 6, 12]}
    add("--sigmas", nargs="+", **sigmas)
    add("--widths", type=count, nargs="+", default=[64, 192])
    add("--size", type=count, default=64)
    arguments = parser.parse_args()
    if arguments.what == "one" and len(arguments.name or ()) != 1:
        parser.error(f"`one` needs --name with one of {NETWORKS}")
    return arguments


@errors_in_one_line()
def main() -> None:
    arguments = parsed_arguments()
    mode = "XLA" if arguments.xla else "no XLA"
    what = "predictions" if arguments.inference else "training steps"
    medians = f"medians of {arguments.repeats} interleaved {what}"
    print(f"{machine()}; {mode}; batch {arguments.batch}; {medians}")
    for benchmark in PARTS[arguments.what]:
        benchmark(arguments)


if __name__ == "__main__":
    main()
