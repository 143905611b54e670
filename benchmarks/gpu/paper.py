"""Counts what the paper's trainings cost on an H100, on a machine that has none.

    python benchmarks/gpu/paper.py                          # all rows of the record
    python benchmarks/gpu/paper.py --only "cifar10, 6 scales, full"

As bound.py, which says what the bound means and what it needs, for a training step of
each data set with one scale channel and with all, in float32 (products in TF32). The
memory is what XLA plans for the step: arguments, results and what is in between. Each
row that was counted goes to results/gpu/paper.json, which `examples/paper/cost.py`
reads.
"""

import argparse
import sys
from pathlib import Path

# Its `run`, not the one beside this file.
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "paper"))

import bound
import jax
from budgets import within
from experiments import EXPERIMENTS
from program import kernels
from run import network
from steps import precision

from keras_gdrn.commands import errors_in_one_line

RECORD = Path(__file__).parents[2] / "results" / "gpu" / "paper.json"
# One experiment for each data set and number of scale channels.
NAMES = ("fashion_mnist_max", "cifar10_max", "stl10_max", "stl10_single_scale")
NAMES += tuple(f"{dataset}_single" for dataset in ("fashion_mnist", "cifar10", "stl10"))
BUDGETS = ("full", "fast")
WITHOUT_TRITON = {"xla_gpu_enable_triton_gemm": False}


def rows() -> dict[str, tuple]:
    """Experiments in a budget, by the names of their rows."""
    found = {}
    for budget in BUDGETS:
        for name in NAMES:
            experiment = within(EXPERIMENTS[name], budget)
            scales = len(experiment.stages[-1].sigma0)
            which = f"{scales} scale{'s'[: scales > 1]}"
            found[f"{experiment.dataset}, {which}, {budget}"] = experiment
    return found


def counted(experiment) -> dict[str, float]:
    stage = experiment.stages[-1]
    batch = stage.recipe.batch_size
    with precision("TF32"):
        model = network(experiment, stage.sigma0, seed=0)
        try:
            program, *_ = bound.training_step(model, batch)
        except jax.errors.JaxRuntimeError:
            # Tiles of some of Triton's products are found by trying, on a GPU only.
            program, *_ = bound.training_step(model, batch, WITHOUT_TRITON)
    sizes = program.memory_analysis()
    memory = sizes.argument_size_in_bytes + sizes.temp_size_in_bytes
    memory += sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    counts = bound.counts(kernels(program.as_text()))
    return {"images": batch, **counts, "memory GB": round(memory / 1e9, 1)}


@errors_in_one_line(ImportError)
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = rows()
    parser.add_argument("--only", nargs="+", choices=every, metavar="NAME")
    for name in parser.parse_args().only or every:
        row = counted(every[name])
        print(name, row, flush=True)
        bound.keep(RECORD, {name: row})


if __name__ == "__main__":
    main()
