"""Measures the package on a GPU: errors, time, memory. One command, tables.

    python benchmarks/gpu/run.py --out runs/gpu --max-minutes 10    # again: it goes on
    python benchmarks/gpu/run.py --out runs/gpu --only errors
    python benchmarks/gpu/run.py --out runs/gpu --only speed --presets rescaled_cifar10
    python benchmarks/gpu/run.py --quick --out runs/gpu-quick       # a minute on a CPU

It stands on JAX and NumPy; TensorFlow need not be there. Not measured on a GPU yet.

- Errors of rounding, against float64: of layers at σ from 0.5 to 32 (and of the paper's
  scheme), of one scale channel at several initial scales, of a whole network; in
  float32, TF32 (on a CPU that is float32), bfloat16 and float16.
- Training steps and predictions of all presets, on windows and on whole maps, of all
  scale channels and of one, in turn with the 3×3 ResNet of the same widths that is
  given as many images as there are scale channels (and as itself). Ratios are medians
  over such pairs within one process, and can be compared between machines. The share is
  that of the roofline: the least time that the device needs for the operations of the
  traced program and for the bytes that the compiled one moves, over the time measured.
- Batches as large as the memory allows.

Each measurement is written at once, to `measurements.jsonl`; the same command skips
what is there. A call that ends leaves `gpu.json` and `gpu.md` of what has been
measured so far. In `--max-minutes`, one measurement takes
place at least, and none begins that would not end if it took the longest of the call.
"""

import argparse
import dataclasses
import os
import sys
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
sys.path.append(str(Path(__file__).parents[1]))  # contenders, measure
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92")

import jax
import keras
import report
import speed
from journal import Journal
from plan import FULL, PARTS, QUICK, Plan, units
from precision import PRECISIONS

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.training import TimeLimit


def measure_all(plan: Plan, options: argparse.Namespace, journal: Journal) -> bool:
    """Measures what is not in the journal; whether there was time for all."""
    limit = TimeLimit(options.max_minutes)
    for key, function in units(plan, tuple(options.only), options.precision, journal):
        if key in journal:
            continue
        if limit.is_reached():
            return False
        print(*key, sep=", ", flush=True)
        begin = time.perf_counter()
        journal.add(key, speed.or_failure(function))
        limit.took(time.perf_counter() - begin)
    return True


def planned(options: argparse.Namespace) -> Plan:
    """As much as was asked for."""
    plan = QUICK if options.quick else FULL
    presets = options.presets or list(plan.presets)
    unknown = [name for name in presets if name not in plan.presets]
    if unknown:
        raise ValueError(
            f"`--presets` must be some of {list(plan.presets)}. Received: {unknown}"
        )
    chosen = {name: plan.presets[name] for name in presets}
    batch = options.batch or plan.batch
    return dataclasses.replace(plan, presets=chosen, batch=batch)


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--max-minutes", type=float, help="of this call")
    parser.add_argument("--only", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--presets", nargs="+", help="only these networks")
    parser.add_argument(
        "--batch", type=positive(int), help="images that a network is given"
    )
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="bfloat16", help="of speed, batches"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny, to see that it runs"
    )
    return parser.parse_args()


@errors_in_one_line()
def main() -> None:
    options = parsed_arguments()
    plan = planned(options)
    about = {
        "device": jax.devices()[0].device_kind,
        "versions": f"JAX {jax.__version__}, Keras {keras.__version__}",
        "batch": plan.batch,
        "quick": options.quick,
    }
    journal = Journal(options.out / "measurements.jsonl", about)
    complete = measure_all(plan, options, journal)
    print("\n".join(map(str, report.write(journal, options.out))))
    if not complete:
        print("Out of time; the same command goes on.")


if __name__ == "__main__":
    main()
