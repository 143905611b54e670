"""Counts what a training step costs on an H100, on a machine that has none.

    python benchmarks/gpu/bound.py                       # all rows of the record
    python benchmarks/gpu/bound.py --only "rescaled_cifar10, density 1" --largest 10
    python benchmarks/gpu/bound.py --record              # keep the counts

XLA compiles Keras' training step, in bfloat16, for a GPU that is only described
(h100.txtpb). The compiled program tells how many kernels run and how many bytes each
reads and writes. The bound adds up, kernel by kernel, the longest of launch, memory
traffic and arithmetic. The same program has the same counts at every run, so that a
change that moves more bytes is seen: a row that differs from the record is marked.

The program does not tell what stays in the cache between kernels, which makes a step
faster, nor which algorithms the libraries choose on the machine, nor whether kernels
reach the peak. Two steps were once timed on an H100: 7.0 ms of bound took 9.6 ms (one
pass of the 3×3 ResNet), 43.7 ms took 35.9 (six scale channels before grids, counted
without the arithmetic of gradients in kernels).

It needs JAX' compiler for GPUs, 5.6 GB, best in an environment of its own:
`pip install "jax[cuda12]" --editable .`.
"""

import argparse
import dataclasses
import datetime
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["KERAS_BACKEND"] = "jax"
sys.path.append(str(Path(__file__).parents[1]))  # contenders

import contenders
import jax
import keras
import numpy as np
from jax._src import xla_bridge
from jax.experimental import topologies
from program import Kernel, by, kernels, seconds
from steps import compiled_state, precision

from keras_gdrn.commands import errors_in_one_line, positive, write_text
from keras_gdrn.models import gauss_der_resnet

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "results" / "gpu" / "bound.json"
DENSITIES = (1.0, 0.7)


def networks() -> dict[str, tuple[Callable[[], keras.Model], int]]:
    """Functions that build the networks of the table, and their batches."""
    found: dict[str, tuple] = {}
    for name, batch in (("rescaled_cifar10", 32), ("anywhere", 24)):
        preset = contenders.PRESETS[name]
        for density in DENSITIES:
            settings = dataclasses.asdict(preset) | {"density": density}
            build = partial(gauss_der_resnet, **settings)
            found[f"{name}, density {density:g}"] = build, batch
        plain = partial(contenders.plain_network, preset)
        for passes, words in ((1, "one pass"), (len(preset.sigma0), "six passes")):
            found[f"{name}, 3×3 ResNet, {words}"] = plain, passes * batch
    return found


def training_step(model: keras.Model, batch: int, options: dict | None = None):
    """A training step compiled for the GPU; seconds of tracing and compiling it."""
    state = compiled_state(model)
    data = np.zeros((batch, *model.input_shape[1:]), "float32"), np.zeros(batch, int)
    place = jax.sharding.SingleDeviceSharding(_described_gpu())
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), (state, data)
    )
    start = time.perf_counter()
    lowered = jax.jit(model.train_step).lower(*shapes)
    traced = time.perf_counter()
    program = lowered.compile(compiler_options=options)
    return program, traced - start, time.perf_counter() - traced


def _described_gpu():
    if "cuda" not in xla_bridge._backend_factories:
        xla_bridge.discover_pjrt_plugins()
    if "cuda" not in xla_bridge._backend_factories:
        raise ImportError('JAX has no compiler for GPUs: `pip install "jax[cuda12]"`')
    description = Path(__file__).with_name("h100.txtpb").read_text(encoding="utf-8")
    topology = topologies.get_topology_desc(
        platform="cuda", target_config=description, topology="1x1x1"
    )
    return topology.devices[0]


def counts(found: list[Kernel]) -> dict[str, float]:
    moved = sum(kernel.times * kernel.bytes for kernel in found)
    operations = sum(kernel.times * kernel.operations for kernel in found)
    return {
        "kernels": sum(kernel.times for kernel in found),
        "GB": round(moved / 1e9, 1),
        "T operations": round(operations / 1e12, 2),
        "ms": round(1e3 * seconds(found), 2),
    }


def report(found: list[Kernel], largest: int) -> None:
    """Prints what costs most: kinds of kernels, operations of JAX, single kernels."""
    for attribute in ("kind", "source"):
        for name, group in by(found, attribute)[:largest]:
            moved = sum(kernel.times * kernel.bytes for kernel in group) / 1e9
            time = 1e3 * seconds(group)
            print(f"  {name:44} {len(group):5} kernels {moved:7.2f} GB {time:7.2f} ms")
        print()
    for kernel in sorted(found, key=lambda kernel: -kernel.seconds)[:largest]:
        moved, time = kernel.bytes / 1e6, 1e6 * kernel.seconds
        print(f"  {time:5.0f} µs {moved:7.1f} MB {kernel.source} {kernel.shape[:48]}")


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, names = parser.add_argument, list(networks())
    add("--only", nargs="+", choices=names, default=names, metavar="NAME")
    add("--largest", type=positive(int), default=0, help="rows of what costs most")
    add("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    return parser.parse_args()


@errors_in_one_line(ImportError)
def main() -> None:
    options = parsed_arguments()
    known, every, new = _record(RECORD)["counts"], networks(), {}
    print(f"JAX {jax.__version__}, Keras {keras.__version__}")
    for name in options.only:
        build, batch = every[name]
        with precision("bfloat16"):
            program, tracing, compiling = training_step(build(), batch)
        found = kernels(program.as_text())
        row = counts(found)
        cells = ", ".join(f"{value:g} {unit}" for unit, value in row.items())
        mark = "" if known.get(name) in (None, row) else f"  DIFFERS: {known[name]}"
        took = f"traced in {tracing:.1f} s, compiled in {compiling:.0f} s"
        print(f"{name}, {batch} images: {cells}; {took}{mark}", flush=True)
        if options.largest:
            report(found, options.largest)
        new[name] = row
    if options.record:
        keep(RECORD, new)


def keep(file: Path, counts: dict[str, dict]) -> None:
    """Puts rows into a record, each with the day and the versions of its count."""
    day = datetime.date.today().isoformat()
    how = f"{day}, JAX {jax.__version__}, Keras {keras.__version__}"
    record = _record(file)
    record["counts"] |= counts
    record["counted"] |= dict.fromkeys(counts, how)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def _record(file: Path) -> dict:
    if file.exists():
        return json.loads(file.read_text("utf-8"))
    command = f"python benchmarks/gpu/{Path(sys.argv[0]).name}"
    begun = {"device": "H100, described", "command": command}
    return {**begun, "counts": {}, "counted": {}}


if __name__ == "__main__":
    main()
