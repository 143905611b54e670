"""Runs one of the paper's experiments, or draws one of its figures, by one command.

    python examples/paper/reproduce.py --list
    python examples/paper/reproduce.py cifar10_max --budget small --download
    python examples/paper/reproduce.py --figure separable_cifar10 --budget full
    python examples/paper/reproduce.py --collect runs/* --seeds

A run's folder, by default `runs/<name>-<budget>`, gets logs and checkpoints, at the end
the accuracies (results.md, results.json), pictures and model.keras. Interrupted at any
moment, the same command goes on. `--figure` runs or resumes all that a figure compares,
each into its folder, and draws it to `runs/<figure>-<budget>.png`, with a table; what
runs have in common is trained once. `--collect` prints a table of several runs by their
folders, with `--seeds` mean and standard deviation over seeds; with `--out curves.png`
it draws the curves.

`--budget`: `smoke` shows that it runs, in seconds, on scikit-learn's digits; `small`
takes minutes to hours of two cores, with narrower networks and fewer images and epochs
(see budgets.py); `medium` trains and tests these networks on all images; `large` has
more parameters and epochs on CIFAR-10; `full` is the paper's setting, and `fast` the
same with windows in place of whole maps.

Images come from TensorFlow Datasets or, with `--h5 FOLDER`, from HDF5 files such as the
authors'; of several data sets, `--h5 cifar10=FOLDER --h5 stl10=FOLDER`. All are looked
up before any training.

Some options replace what the budget says: `--receptive-field`, the half-width of what
is evaluated in standard deviations (`auto`; `whole`, which is the paper's),
`--head-initializer` (`he_uniform` is the paper's; with `positive`, no class of a single
channel is lost), `--subpixel`, `--widths`, `--canvas`. `--start-from RUN` takes over
the stages of one scale channel of another run, or its first. On several machines, on
JAX: on each the same command with KERAS_BACKEND=jax and `--machines HOST:PORT COUNT
NUMBER`, where HOST is the machine with the NUMBER 0, which writes the folder.
"""

import argparse
import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

# Otherwise TensorFlow greets a machine without a GPU by several lines of errors.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from budgets import BUDGETS, with_network, within
from experiments import EXPERIMENTS, Experiment
from figures import FIGURES, draw, listing
from images import Source, named_folder
from records import curves, over_seeds, read_records, report
from run import hours, parts, run

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
from keras_gdrn.visualization import plot_scale_generalization


@errors_in_one_line()
def main() -> None:
    options = parse()
    if options.list:
        return print(listing(options.budget))
    if options.collect:
        records = read_records(options.collect)
        print(over_seeds(records) if options.seeds else report(records))
        if options.out:
            plot_scale_generalization(curves(records)).savefig(options.out)
        return
    if options.mixed_precision:
        keras.config.set_dtype_policy(f"mixed_{options.mixed_precision}")
    if options.machines:
        address, *numbers = options.machines
        keras.distribution.initialize(address, *map(int, numbers))
    on_devices(options.devices)  # an error at once
    with tempfile.TemporaryDirectory() as unused:
        if not is_first_process():
            options.out, options.start_from = Path(unused), None
        try:
            (reproduce_figure if options.figure else reproduce)(options)
        except OutOfTime:
            print("Out of time; the same command goes on.")


def reproduce(options: argparse.Namespace) -> None:
    """Runs or resumes the experiment in its folder, or prints what is there already."""
    out = options.out or Path("runs") / f"{options.name}-{options.budget}"
    if not complete(options.name, out, options) and is_first_process():
        print((out / "results.md").read_text(encoding="utf-8"))
        print(f"This run is complete; its results are in {out}")


def reproduce_figure(options: argparse.Namespace) -> None:
    """Runs or resumes what a figure needs, and draws it."""
    figure, root = FIGURES[options.figure], options.out or Path("runs")
    options.max_minutes = limit = TimeLimit(options.max_minutes)
    folders = {name: root / f"{name}-{options.budget}" for name in figure.runs}
    if is_first_process():
        for name, folder in folders.items():
            if not (folder / "results.json").exists():
                experiment = chosen(name, options)
                options.source.look_up(experiment.dataset, parts(experiment))
    for place, name in enumerate(figure.runs):
        if from_first_process(lambda: limit.is_reached(0)):
            raise OutOfTime
        other = start_for(name, figure.runs[:place])
        options.start_from = folders[other] if other and is_first_process() else None
        complete(name, folders[name], options)
    if is_first_process():
        file = root / f"{options.figure}-{options.budget}.png"
        draw(figure, folders, file)
        print(f"{figure.where}: {file}, with its table")


def start_for(run: str, others: Iterable[str]) -> str | None:
    """Of other experiments, one whose first stage is the same, to take over."""

    def start(name: str) -> tuple:
        """What decides it; one scale channel is the same whatever pools it."""
        of = EXPERIMENTS[name]
        if len(of.stages[0].sigma0) == 1:
            of = with_network(of, scale_pooling="max", sigma0=())
        how = of.plain, of.separate_statistics
        return of.stages[0], of.network, of.dataset, *how

    return next((o for o in others if o != run and start(o) == start(run)), None)


def complete(name: str, out: Path, options: argparse.Namespace) -> bool:
    """Runs an experiment to its end; `False` if that has been done before."""
    experiment = chosen(name, options)
    with contextlib.ExitStack() as held:

        def is_complete() -> bool:
            held.enter_context(lock_folder(out))
            # First, as a network that cannot be made should leave no settings behind.
            time = hours(experiment)
            done = (out / "results.json").exists()
            # A run that is complete needs no images.
            needed = [] if done and not options.source.h5 else parts(experiment)
            images = options.source.look_up(experiment.dataset, needed)
            claim_folder(out, settings(experiment, options.seed, images))
            if not done:
                print(f"{name}: about {time:,.1f} h of one core of an AMD EPYC")
            return done

        if from_first_process(is_complete):
            return False
        run(name, experiment, argparse.Namespace(**{**vars(options), "out": out}))
    return True


def settings(experiment: Experiment, seed: int, images: object) -> dict:
    """What decides the result, for JSON; `fit` knows the rest, such as initializers."""
    decided = dataclasses.asdict(experiment)
    del decided["what"]
    precision = keras.config.dtype_policy().name
    return {**decided, "seed": seed, "precision": precision, "images": images}


def chosen(name: str, options: argparse.Namespace) -> Experiment:
    """An experiment in its budget, with the options that replace its network's own."""
    experiment = within(EXPERIMENTS[name], options.budget)
    fields = ("subpixel", "head_initializer", "widths")
    changes = {of: value for of in fields if (value := getattr(options, of))}
    if options.receptive_field != "budget":
        changes["receptive_field"] = options.receptive_field
    if options.canvas:
        channels = experiment.network.input_shape[-1]
        changes["input_shape"] = (options.canvas, options.canvas, channels)
    return with_network(experiment, **changes)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what, count = parser.add_mutually_exclusive_group(required=True), positive(int)
    add, flag = parser.add_argument, {"action": "store_true"}
    what.add_argument("name", nargs="?", choices=list(EXPERIMENTS), metavar="NAME")
    what.add_argument("--list", **flag, help="all names, by section of the paper")
    what.add_argument("--figure", choices=list(FIGURES), metavar="NAME")
    what.add_argument("--collect", nargs="+", type=Path, metavar="RUN")
    add("--seeds", **flag, help="of --collect: means over seeds")
    add("--budget", choices=BUDGETS, default="small")
    add("--out", type=Path, help="folder of the run; of a figure, that of all its runs")
    add("--seed", type=int, default=0)
    add("--data-dir", help="directory of TensorFlow Datasets")
    add("--download", **flag, help="download the data, if need be")
    h5 = {"type": named_folder, "action": "append", "metavar": "[NAME=]FOLDER"}
    add("--h5", **h5, help="read HDF5 files, of a data set or of all")
    add("--max-minutes", type=float, help="stop in time; the same command goes on")
    add("--start-from", type=Path, metavar="RUN", help="take over its first stages")
    add("--receptive-field", type=receptive_field, default="budget", metavar="Q")
    add("--subpixel", **flag, help="fine channels look between the pixels")
    add("--head-initializer", choices=HEAD_INITIALIZERS)
    add("--widths", nargs="+", type=count, metavar="N", help="of the stem and blocks")
    add("--canvas", type=count, help="side of the training images in pixels")
    add("--mixed-precision", choices=("float16", "bfloat16"))
    add("--jit", **flag, help="compile by XLA (a GPU does by default)")
    add("--tensorboard", **flag, help="write logs for TensorBoard")
    add("--devices", type=devices, metavar="N", help="GPUs to train on; `all` of them")
    add("--machines", nargs=3, metavar=("HOST:PORT", "COUNT", "NUMBER"))
    options = parser.parse_args()
    if options.figure and options.start_from:
        parser.error("--start-from is for a NAME; a figure's runs share what they can")
    if options.machines and keras.backend.backend() != "jax":
        parser.error("--machines is for JAX: set KERAS_BACKEND=jax")
    if options.devices is None:
        options.devices = "all" if options.machines else 1
    options.source = Source(options.data_dir, options.download, dict(options.h5 or ()))
    return options


def receptive_field(text: str) -> float | str | None:
    if text == "whole":
        return None
    return text if text in ("auto", "budget") else positive(float)(text)


def devices(text: str) -> int | str:
    return text if text == "all" else int(text)


if __name__ == "__main__":
    main()
