"""Runs one of the paper's experiments, or draws one of its figures, by one command.

    python examples/reproduce.py --list
    python examples/reproduce.py cifar10_max --budget small --download
    python examples/reproduce.py mnist --budget small --data-dir data --out runs/mnist
    python examples/reproduce.py --figure separable_cifar10 --budget full

The folder of a run (by default `runs/<name>-<budget>`) gets logs and checkpoints of
each stage, at the end the accuracies (results.md, results.json), pictures and
model.keras. Interrupted at any moment, the same command goes on; `collect.py` makes a
table of the results of several runs.

`--figure` runs or resumes all that a figure of the paper compares, each into its folder
`runs/<name>-<budget>`, and draws it to `runs/<figure>-<budget>.png`, with a table
beside it. What runs have in common is trained once.

Several GPUs of one machine: `--devices all`. Several machines, on JAX: on each of them
the same command with `KERAS_BACKEND=jax` and

    --machines HOST:PORT COUNT NUMBER

where HOST is the machine with the NUMBER 0, which alone writes the folder of the run.

Images come from TensorFlow Datasets, downloaded with `--download`; or, `--h5 FOLDER`,
from HDF5 files such as the authors' (`h5_report.py` says what a folder holds); of
several data sets, `--h5 cifar10=FOLDER --h5 stl10=FOLDER`. All that a run or the runs
of a figure need is looked up before the first of them begins.

Budgets: `smoke` only shows that it runs, in seconds, on scikit-learn's digits; `small`
takes minutes to hours on two cores, with narrower networks and fewer images and epochs
(see budgets.py); `medium` trains these networks on all images and tests on all; `large`
does so with more parameters and epochs on CIFAR-10; `full` is the paper's setting, and
`fast` the same with windows (`--receptive-field auto`) instead of whole maps.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

# Before Keras: it keeps TensorFlow quiet.
from runner import Options, collect, network, parts, run

# isort: split
import keras
from budgets import BUDGETS, experiment_of
from draw import draw
from estimate import announcement
from experiments import EXPERIMENTS
from figures import FIGURES, start_for
from listing import listing
from settings import settings, tell_versions
from sources import add_source, source_of

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.models import HEAD_INITIALIZERS
from keras_gdrn.training import (
    OutOfTime,
    TimeLimit,
    claim_folder,
    from_first_process,
    is_first_process,
    lock_folder,
    on_devices,
)


@errors_in_one_line()
def main() -> None:
    options = parse()
    if options.list:
        print(listing(options.budget))
        return
    if options.mixed_precision:
        keras.config.set_dtype_policy(f"mixed_{options.mixed_precision}")
    if options.machines:
        address, *numbers = options.machines
        keras.distribution.initialize(address, *map(int, numbers))
    try:
        on_devices(options.devices)
    except ValueError as error:
        sys.exit(f"error: --devices: {error}")
    with tempfile.TemporaryDirectory() as elsewhere:
        if not is_first_process():
            options.out, options.start_from = Path(elsewhere), None
        start(options)
    if not is_first_process():
        print("The run's folder is on the first machine.")


def start(options: argparse.Namespace) -> None:
    """Reproduces what is asked for, or tells what to do next."""
    try:
        if options.figure:
            reproduce_figure(options)
        else:
            reproduce(options)
    except OutOfTime:
        print("Out of time; the same command goes on.")


def reproduce(options: argparse.Namespace) -> None:
    """Runs the experiment into its folder, or tells what is there already."""
    out = options.out or Path("runs") / f"{options.name}-{options.budget}"
    ran = complete(options.name, out, options, options.max_minutes, options.start_from)
    if not ran:
        if is_first_process():
            print((out / "results.md").read_text(encoding="utf-8"))
        print(f"This run is complete; its results are in {out}")


def reproduce_figure(options: argparse.Namespace) -> None:
    """Runs or resumes what a figure needs, and draws it."""
    figure, root = FIGURES[options.figure], options.out or Path("runs")
    limit = TimeLimit(options.max_minutes)
    folders = {name: root / f"{name}-{options.budget}" for name in figure.runs}
    if is_first_process():
        to_run = (n for n, f in folders.items() if not (f / "results.json").exists())
        collect([experiment_of(name, options) for name in to_run], source_of(options))
    for place, name in enumerate(figure.runs):
        if from_first_process(lambda: limit.is_reached(0)):
            raise OutOfTime
        before = figure.runs[:place] if is_first_process() else ()
        other = start_for(name, before)
        begin = other and folders[other]
        complete(name, folders[name], options, limit, begin)
    if is_first_process():
        files = draw(figure, folders, root / f"{options.figure}-{options.budget}.png")
        print(f"{figure.where}: {', '.join(map(str, files))}")


def complete(
    name: str,
    out: Path,
    options: argparse.Namespace,
    max_minutes: float | TimeLimit | None,
    start_from: Path | None,
) -> bool:
    """Runs an experiment to its end; `False` if that has been done before."""
    experiment, source = experiment_of(name, options), source_of(options)
    held = contextlib.ExitStack()

    def is_complete() -> bool:
        held.enter_context(lock_folder(out))
        # Refuse what does not fit it, which then has no say in the folder.
        network(experiment, experiment.stages[-1].sigma0, options.seed)
        done = (out / "results.json").exists()
        # A run that is complete needs no images.
        needed = [] if done and not source.h5 else parts(experiment)
        images = source.collect(experiment.dataset, needed)
        claim_folder(out, settings(experiment, options.seed, images))
        if done:
            return True
        tell_versions(out)
        if source.h5:
            print(json.dumps(images, indent=2))
        print(f"{name}: {announcement(experiment)}")
        return False

    with held:
        if from_first_process(is_complete):
            return False
        how = Options(
            out,
            seed=options.seed,
            source=source,
            max_minutes=max_minutes,
            start_from=start_from,
            jit_compile=True if options.jit else "auto",
            tensorboard=options.tensorboard,
            devices=options.devices,
        )
        run(name, experiment, how)
    return True


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("name", nargs="?", choices=list(EXPERIMENTS), metavar="NAME")
    add("--list", action="store_true", help="all names, and the time that each takes")
    add("--figure", choices=list(FIGURES), metavar="NAME", help="draw it from its runs")
    add("--budget", choices=BUDGETS, default="small")
    add("--out", type=Path, help="folder of the run; of a figure, that of all its runs")
    add("--seed", type=int, default=0)
    add_source(add)
    add("--max-minutes", type=float, help="stop in time; the same command goes on")
    add(
        "--start-from",
        type=Path,
        help="take the stages of one scale channel of this other run, or its first",
    )
    add(
        "--receptive-field",
        type=receptive_field,
        default="budget",
        metavar="Q",
        help="half-width of what is evaluated, in standard deviations; `auto`, or "
        "`whole`, which is the paper's; by default the budget's",
    )
    add(
        "--subpixel",
        action="store_true",
        help="scale channels of less than a pixel look between the pixels",
    )
    add(
        "--head-initializer",
        choices=HEAD_INITIALIZERS,
        help="how the last layer begins: `he_uniform` is the paper's, `positive` loses "
        "no class of a single channel; by default the budget's",
    )
    add(
        "--widths",
        nargs="+",
        type=positive(int),
        metavar="N",
        help="channels of the first layer and of each block",
    )
    add("--canvas", type=positive(int), help="side of the training images in pixels")
    add("--mixed-precision", choices=("float16", "bfloat16"))
    add("--jit", action="store_true", help="compile by XLA (a GPU does by default)")
    add("--tensorboard", action="store_true", help="write logs for TensorBoard")
    add("--devices", type=devices, metavar="N", help="GPUs to train on; `all` of them")
    names = ("HOST:PORT", "COUNT", "NUMBER")
    add("--machines", nargs=3, metavar=names, help="several machines; see above")
    options = parser.parse_args()
    if sum(map(bool, (options.name, options.figure, options.list))) != 1:
        parser.error("a NAME, --figure or --list is needed")
    if options.figure and options.start_from:
        parser.error("--start-from is for a NAME; a figure's runs share what they can")
    if options.machines and keras.backend.backend() != "jax":
        parser.error("--machines is for JAX: set KERAS_BACKEND=jax")
    if options.machines and not all(part.isdigit() for part in options.machines[1:]):
        parser.error("--machines takes HOST:PORT and two numbers")
    if options.devices is None:
        options.devices = "all" if options.machines else 1
    return options


def receptive_field(text: str) -> float | str | None:
    if text == "whole":
        return None
    return text if text in ("auto", "budget") else positive(float)(text)


def devices(text: str) -> int | str:
    return text if text == "all" else int(text)


if __name__ == "__main__":
    main()
