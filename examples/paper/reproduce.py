"""Runs one of the paper's experiments, or draws one of its figures, by one command.

    python examples/paper/reproduce.py --list
    python examples/paper/reproduce.py cifar10_max --budget small --download
    python examples/paper/reproduce.py --figure separable_cifar10 --budget full
    python examples/paper/reproduce.py --collect runs/* --seeds

A run's folder, by default `runs/<name>-<budget>`, gets logs and checkpoints, at the end
the accuracies (results.md, results.json), pictures and model.keras. After any
interruption, the same command resumes. `--figure` runs or resumes the experiments of a
figure and draws it to `runs/<figure>-<budget>.png`, with a table; stages that runs
share are trained once. `--collect` prints a table of several runs by their folders,
with `--seeds` means and standard deviations; `--out curves.png` draws the curves. Where
time is limited, `timeout 20m python examples/paper/reproduce.py …` stops it after the
present step of a training, and nothing is lost.

`--budget`: `smoke` shows that it runs, in seconds, on scikit-learn's digits; `small`
takes minutes to hours on two CPU cores, with narrower networks and fewer images and
epochs (see budgets.py); `medium` trains and tests these networks on all images; `large`
has more parameters and epochs on CIFAR-10; `full` is the paper's setting, and `fast`
the same on grids.

Images come from TensorFlow Datasets, from files of `keras_gdrn.data.pack` in
`--data-dir` or, with `--h5 FOLDER`, from HDF5 files such as the authors', of several
data sets with a subfolder for each: FOLDER/cifar10. All are looked up before any
training.

Options for the network replace those of the budget. `--start-from RUN` reuses the first
stage of another run.
"""

import argparse
import dataclasses
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# Otherwise TensorFlow prints several lines of errors on a machine without a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
from budgets import BUDGETS, with_network, with_recipes, within
from cost import EXPLANATION, cost
from experiments import EXPERIMENTS, Experiment
from figures import FIGURES, draw, listing
from images import Source
from records import curves, over_seeds, read_records, report
from run import network, parts, run

from keras_gdrn.commands import errors_in_one_line, positive, save_figure
from keras_gdrn.models import HEAD_INITIALIZERS
from keras_gdrn.training import claim_folder, lock_folder, on_devices
from keras_gdrn.visualization import plot_scale_generalization

# Options that replace a field of the network.
FIELDS = ("density", "head_initializer", "receptive_field", "widths")


@errors_in_one_line()
def main() -> None:
    options = parse()
    if options.list:
        return print(listing(options.budget))
    if options.collect:
        records = read_records(options.collect)
        print(over_seeds(records) if options.seeds else report(records))
        if options.out:
            save_figure(plot_scale_generalization(curves(records)), options.out)
        return
    if options.mixed_precision:
        keras.config.set_dtype_policy(f"mixed_{options.mixed_precision}")
    on_devices(options.devices)  # an error at once
    if options.figure:
        return reproduce_figure(options)
    name = options.name
    complete(name, options.out or Path("runs") / f"{name}-{options.budget}", options)


def reproduce_figure(options: argparse.Namespace) -> None:
    """Runs or resumes all that a figure needs, and draws it."""
    figure, root = FIGURES[options.figure], options.out or Path("runs")
    folders = {name: root / f"{name}-{options.budget}" for name in figure.runs}
    for name, folder in folders.items():
        if not (folder / "results.json").exists():
            experiment = chosen(name, options)
            options.source.look_up(experiment.dataset, parts(experiment))
    for place, name in enumerate(figure.runs):
        options.start_from = folders.get(start_for(name, figure.runs[:place]))
        complete(name, folders[name], options)
    file = root / f"{options.figure}-{options.budget}.png"
    draw(figure, folders, file)
    print(f"{figure.where}: {file}, with its table")


def start_for(run: str, others: Iterable[str]) -> str | None:
    """Another experiment with the same first stage, which can be reused."""

    def start(name: str) -> tuple:
        """What determines it; pooling has no effect on one scale channel."""
        of = EXPERIMENTS[name]
        if len(of.stages[0].sigma0) == 1:
            of = with_network(of, scale_pooling="max", sigma0=())
        return of.stages[0], of.network, of.dataset, of.plain

    return next((o for o in others if o != run and start(o) == start(run)), None)


def complete(name: str, out: Path, options: argparse.Namespace) -> None:
    """Runs an experiment to its end, or shows what is in its folder already."""
    experiment = chosen(name, options)
    with lock_folder(out):
        # First, as a network that cannot be built should leave no settings behind.
        network(experiment, experiment.stages[-1].sigma0, options.seed)
        done = (out / "results.json").exists()
        # A run that is complete needs no images.
        needed = [] if done and not options.source.h5 else parts(experiment)
        images = options.source.look_up(experiment.dataset, needed)
        claim_folder(out, settings(experiment, options.seed, images))
        if done:
            print((out / "results.md").read_text(encoding="utf-8"))
            print(f"This run is complete; its results are in {out}")
            return
        print(f"{name}, in {out}")
        if options.budget != "smoke":
            print(f"About {cost(experiment)}. {EXPLANATION}", flush=True)
        if options.batch_size or options.epochs:
            print("With --batch-size or --epochs, it departs from the paper.")
        run(name, experiment, argparse.Namespace(**{**vars(options), "out": out}))


def settings(experiment: Experiment, seed: int, images: object) -> dict:
    """What determines the result, for JSON; `fit` adds others, such as initializers."""
    decided = dataclasses.asdict(experiment)
    del decided["what"]
    precision = keras.config.dtype_policy().name
    return {**decided, "seed": seed, "precision": precision, "images": images}


def chosen(name: str, options: argparse.Namespace) -> Experiment:
    """An experiment in its budget, changed by the options."""
    experiment = within(EXPERIMENTS[name], options.budget)
    given = vars(options)
    changes = {field: given[field] for field in FIELDS if field in given}
    if "widths" in changes:
        changes["widths"] = tuple(changes["widths"])
    if options.canvas:
        channels = experiment.network.input_shape[-1]
        changes["input_shape"] = (options.canvas, options.canvas, channels)
    experiment = with_recipes(experiment, recipe_changes(experiment, options))
    return with_network(experiment, **changes)


def recipe_changes(experiment: Experiment, options: argparse.Namespace) -> list[dict]:
    """What the options change in the recipe of each stage."""
    stages, size = experiment.stages, options.batch_size
    if options.epochs and len(options.epochs) != len(stages):
        names = " and ".join(stage.name for stage in stages)
        raise ValueError(
            f"--epochs needs one number for each stage of {options.name}: {names}. "
            f"Received: {' '.join(map(str, options.epochs))}"
        )
    of_all = {"batch_size": size} if size else {}
    epochs = options.epochs or [stage.recipe.epochs for stage in stages]
    return [{"epochs": number, **of_all} for number in epochs]


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
    add("--seeds", **flag, help="with --collect: means over seeds")
    add("--budget", choices=BUDGETS, default="small")
    add("--out", type=Path, help="folder of the run; of a figure, that of all its runs")
    add("--seed", type=int, default=0)
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--download", **flag, help="download the data if needed")
    add("--h5", type=Path, metavar="FOLDER", help="read HDF5 files")
    add("--start-from", type=Path, metavar="RUN", help="reuse its first stage")
    own = {"default": argparse.SUPPRESS}  # by default the budget's
    text = "samples per sigma; the paper's evaluation: pixels"
    density = number_or(positive(float), pixels=None)
    add("--density", type=density, metavar="D", **own, help=text)
    text = "half-width of windows, in standard deviations; or: whole"
    half_width = number_or(positive(float), whole=None)
    add("--receptive-field", type=half_width, metavar="Q", **own, help=text)
    text = "the paper's: he_uniform; with positive, one channel loses no class"
    add("--head-initializer", choices=HEAD_INITIALIZERS, **own, help=text)
    add("--widths", nargs="+", type=count, metavar="N", **own, help="stem and blocks")
    add("--canvas", type=count, help="side of the training images in pixels")
    text = "images in a batch, for less memory; the result departs from the paper's"
    add("--batch-size", type=count, metavar="N", help=text)
    add("--epochs", nargs="+", type=count, metavar="N", help="of each stage")
    add("--mixed-precision", choices=("float16", "bfloat16"))
    text = "of training between checkpoints: what an interruption may cost"
    add("--checkpoint-minutes", type=positive(float), default=10.0, help=text)
    devices = number_or(int, all="all")
    text = "number of GPUs to train on, or all"
    add("--devices", type=devices, metavar="N", default=1, help=text)
    options = parser.parse_args()
    if options.figure and options.start_from:
        parser.error("--start-from needs a NAME; a figure's runs share their stages")
    if options.figure and options.epochs:
        parser.error("--epochs needs a NAME; a figure's runs have different stages")
    options.source = Source(options.data_dir, options.download, options.h5)
    return options


def number_or(kind: Callable, **words: str | None) -> Callable:
    """The type of an option that is a number, or one of these words."""

    def number(text: str) -> Any:
        return words[text] if text in words else kind(text)

    return number


if __name__ == "__main__":
    main()
