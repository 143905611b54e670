"""Measures the package on a GPU: errors, time, memory. One command, one report.

    python benchmarks/gpu/run.py --out runs/gpu
    python benchmarks/gpu/run.py --out runs/gpu --only errors
    python benchmarks/gpu/run.py --out runs/gpu --only speed --presets rescaled_cifar10
    python benchmarks/gpu/run.py --quick --out runs/gpu-quick       # a minute on a CPU

It stands on JAX and NumPy; TensorFlow need not be there. Not measured on a GPU yet.

- `errors` of rounding, against float64: of layers at σ from 0.5 to 32 (and of the
  paper's scheme) and of networks; in float32, TF32 (not on a CPU), bfloat16, float16.
- `speed`: training steps and predictions of each network, on windows and on whole maps,
  in turn with the 3×3 ResNet of the same widths, which is given as many images as there
  are scale channels, and with the paper's scheme. Ratios to the first are medians over
  such pairs within one process, and can be compared between machines. With them the
  memory, what compiling took, and the operations of the traced program in a second.

Each measurement is written at once, to `gpu.json` and to the tables in `gpu.md`:
interrupted, the same command goes on.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator
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
from errors import PARTS, rounding_errors
from steps import PRECISIONS, Step, inference_step, precision, training_step

from keras_gdrn.commands import errors_in_one_line, positive, replacing
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import ARCHITECTURES, gauss_der_resnet
from keras_gdrn.visualization import markdown_table

LAYERS = {"GaussDerConv": GaussDerConv, "paper's scheme": contenders.PaperConv}
SIGMAS = tuple(2.0 ** (i / 2) for i in range(-2, 11))
TINY = dataclasses.replace(
    ARCHITECTURES["digits"], input_shape=(12, 12, 1), widths=(4,), sigma0=(0.7, 1.0)
)
# The network of most interest first.
PRESETS = {n: ARCHITECTURES[n] for n in ("rescaled_cifar10", *ARCHITECTURES)}
# What the tables say of a step, and how.
COLUMNS = {
    "images": lambda r: str(r["images"]),
    "time": lambda r: f"{1000 * r['seconds']:.2f} ms",
    "ratio": lambda r: f"{r['ratio']:.3f}",
    "memory": lambda r: f"{r['memory'] / 2**20:.0f} MiB",
    "compiling": lambda r: f"{r['compiling']:.1f} s",
    "TFLOP/s": lambda r: f"{r['operations'] / r['seconds'] / 1e12:.3g}",
}


def measurements(options: argparse.Namespace) -> Iterator[tuple[str, Callable]]:
    """All of them by their names; each is a function that returns its result."""
    presets = {name: PRESETS[name] for name in options.presets}
    sigmas, size = SIGMAS, 64
    if options.quick:
        presets, sigmas, size = {"tiny": TINY}, (2.0,), 16
    models = {
        f"{name}, σ = {sigma:.3g}": partial(layer_model, kind, size, sigma)
        for name, kind in LAYERS.items()
        for sigma in sigmas
    }
    for name, settings in presets.items():
        asked = {**dataclasses.asdict(settings), "scale_dropout": 0.0}
        models[name] = partial(gauss_der_resnet, **asked)
    for name in models if "errors" in options.only else ():
        yield f"errors of {name}", partial(rounding_errors, models[name], batch=4)
    for name in presets if "speed" in options.only else ():
        for task in ("training", "inference"):
            one = partial(speed, presets[name], task, options)
            yield f"{task} of {name}, {options.precision}", one


def layer_model(kind: type, size: int, sigma: float) -> keras.Model:
    """A model, as a layer casts its inputs only where it is called by one."""
    image = keras.Input((size, size, size))
    return keras.Model(image, kind(size, sigma)(image))


def speed(settings, task: str, options: argparse.Namespace) -> dict:
    """For each network what is known of its step, or why the device could not."""
    steps, found = {}, {}
    networks = contenders.network_contenders(settings, options.batch)
    for name, (build, count) in networks.items():
        try:
            steps[name] = step_of(build, count, settings, task, options.precision)
        except jax.errors.JaxRuntimeError as error:  # such as out of memory
            found[name] = {"failed": str(error).splitlines()[0]}
    samples = measure.interleaved(steps, 1 if options.quick else 15)
    seconds = {n: [s / steps[n].count for s in samples[n]] for n in steps}
    reference = next(iter(networks))
    ratios = measure.ratios(seconds, reference) if reference in steps else {}
    for name, step in steps.items():
        found[name] = {
            "images": len(step.data[0]),
            "seconds": statistics.median(seconds[name]),
            "ratio": ratios.get(name, float("nan")),
            **{of: getattr(step, of) for of in ("memory", "compiling", "operations")},
        }
    return found


def step_of(build: Callable, count: int, settings, task: str, at: str) -> Step:
    shape = (count, *settings.input_shape)
    images = np.random.default_rng(0).random(shape, "float32")
    with precision(at):
        if task == "inference":
            return inference_step(build(), images)
        labels = np.arange(count, dtype="int32") % settings.classes
        return training_step(build(), images, labels)


def report(about: dict, results: dict) -> str:
    """A table of errors and one of steps, each with what has been measured of it."""
    errors, steps = [["of", "in", *PRECISIONS]], [["of", "by", *COLUMNS]]
    for key, result in results.items():
        if key.startswith("errors of "):
            for part in PARTS:
                cells = [f"{result[at][part]:.1e}" for at in PRECISIONS]
                errors.append([key.removeprefix("errors of "), part, *cells])
            continue
        for name, of in result.items():
            cells = [of.get("failed"), *["–"] * (len(COLUMNS) - 1)]
            if "failed" not in of:
                cells = [cell(of) for cell in COLUMNS.values()]
            steps.append([key, name, *cells])
    parts = {"Errors, relative to float64": errors, "Time and memory": steps}
    lines = [f"# {about['device']}", ", ".join(f"{n}: {about[n]}" for n in about)]
    for title, rows in parts.items():
        lines += [f"## {title}", markdown_table(rows)] if rows[1:] else []
    return "\n\n".join(lines)


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of the results")
    add("--only", nargs="+", default=("errors", "speed"), choices=("errors", "speed"))
    add("--presets", nargs="+", default=PRESETS, choices=PRESETS, metavar="NAME")
    add("--batch", type=positive(int), default=32, help="images for a network")
    add("--precision", choices=PRECISIONS, default="bfloat16", help="of speed")
    add("--quick", action="store_true", help="tiny, to see that it runs")
    return parser.parse_args()


@errors_in_one_line()
def main() -> None:
    options = parsed_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    file, results = options.out / "gpu.json", {}
    about = {
        "device": jax.devices()[0].device_kind,
        "versions": f"JAX {jax.__version__}, Keras {keras.__version__}",
        "batch": options.batch,
        "quick": options.quick,
    }
    if file.exists():
        found = json.loads(file.read_text(encoding="utf-8"))
        results = found["results"]
        if found["about"] != about:
            raise ValueError(
                f"`out` must be a new folder, or that of {about}. Received: "
                f"out={str(options.out)!r}, measured on {found['about']}"
            )
    for key, measured in measurements(options):
        if key in results:
            continue
        print(key, flush=True)
        results[key] = measured()
        text = json.dumps({"about": about, "results": results}, ensure_ascii=False)
        with replacing(file) as partial_file:
            partial_file.write_text(f"{text}\n", encoding="utf-8")
        page = f"{report(about, results)}\n"
        (options.out / "gpu.md").write_text(page, encoding="utf-8")
    print(report(about, results))


if __name__ == "__main__":
    main()
