"""Searches for the ratio, the widths, the pooling and more, by Keras Tuner.

    python tuning/search.py
    python tuning/search.py --dataset mnist --download --tuner bayesian \\
        --max-trials 30 --limit 5000

The first takes some minutes on two CPU cores. The folder `--out` (by default
`runs/search-<dataset>-<tuner>`) gets the trials, a table of the best ones (trials.md),
pictures of all (trials.png) and the best network, which examples/evaluate.py tests:

    python examples/evaluate.py runs/search-digits-random/model.keras --dataset digits

After Ctrl-C, it writes the results so far. The same command resumes the search, also
after the end with more `--max-trials`. By default each trial trains one scale channel,
and tests the network with all channels at its weights; `--single-scale-epochs` below
`--epochs` trains that network too.

With Ray (`pip install ray`), each trial has a separate process: several at the same
time on this machine, with a GPU each if there are any, or on a cluster whose machines
share the folder `--out`.

    python tuning/search.py --parallel 4
    python tuning/search.py --ray auto --out /shared/found --gpus 1 --cpus 8

A trial whose process dies is run again from its last checkpoint, and so are those that
were running when this command was killed.

The objective is measured on validation images, rescaled to the `--factors`. If a data
set has no validation split (digits, stl10_original), the last fifth of its training
part is held out.
"""

import argparse
import dataclasses
import os
import sys
from pathlib import Path

# Otherwise TensorFlow prints several lines of errors on a machine without a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import keras_tuner
import numpy as np
import trial_data
from options import SPACES, TUNERS, parse
from report import plot_trials, report, trained_trials

from keras_gdrn.commands import (
    atomic_write,
    errors_in_one_line,
    save_figure,
    write_text,
)
from keras_gdrn.data import DATASETS
from keras_gdrn.training import RECIPES, Recipe, claim_folder, lock_folder
from keras_gdrn.tuning import GaussDerResNetHyperModel, SearchSpace, search_on_ray


class Seeded:
    """A tuner with a random seed for each trial, which prints the errors of trials.

    A trial that is run again has the same seed, also in another process.
    """

    def run_trial(self, trial, *args, seed, **kwargs):
        of_trial = np.random.SeedSequence([seed, int(trial.trial_id)])
        keras.utils.set_random_seed(int(of_trial.generate_state(1)[0]))
        return super().run_trial(trial, *args, seed=seed, **kwargs)

    def on_trial_end(self, trial):
        if trial.message:
            print(f"Trial {trial.trial_id} failed: {trial.message.splitlines()[-1]}")
        super().on_trial_end(trial)


@errors_in_one_line(RuntimeError, ImportError)
def main() -> None:
    options = parse(__doc__)
    keras.utils.set_random_seed(options.seed)
    hypermodel = make_hypermodel(options)
    tests = trial_data.validation(options)
    with lock_folder(options.out):
        claim_folder(options.out, settings(options, hypermodel))
        tuner = make_tuner(options, hypermodel)
        try:
            search(tuner, options, tests)
        except KeyboardInterrupt:
            print("\nInterrupted; the same command resumes")
        write(tuner, options.out)


def settings(options: argparse.Namespace, hypermodel: GaussDerResNetHyperModel) -> dict:
    """All that determines the result, except the length and places of the search."""
    places = {"out", "data_dir", "download", "max_trials"}
    places |= {"parallel", "ray", "cpus", "gpus"}
    return {
        **{name: of for name, of in vars(options).items() if name not in places},
        "space": dataclasses.asdict(hypermodel.space),
        "recipe": dataclasses.asdict(hypermodel.base_recipe),
    }


def recipe(options: argparse.Namespace) -> Recipe:
    """The paper's, with its augmentation of the images; digits are not augmented."""
    data = options.dataset
    name = "stl10" if data == "stl10_original" else f"rescaled_{data}"
    if name not in RECIPES:
        return Recipe(options.epochs, 32)
    paper = RECIPES[name]
    warmup = options.epochs * paper.warmup_epochs // paper.epochs
    return dataclasses.replace(paper, epochs=options.epochs, warmup_epochs=warmup)


def make_hypermodel(options: argparse.Namespace) -> GaussDerResNetHyperModel:
    info = DATASETS[options.dataset]
    side = options.canvas or info.canvas
    space = SPACES[options.space] or SearchSpace.for_images(side)
    return GaussDerResNetHyperModel(
        (side, side, info.image_shape[-1]),
        info.classes,
        space=space.only(*options.only) if options.only else space,
        recipe=recipe(options),
        single_scale_epochs=options.single_scale_epochs,
    )


def make_tuner(
    options: argparse.Namespace, hypermodel: GaussDerResNetHyperModel
) -> keras_tuner.Tuner:
    length = {"max_trials": options.max_trials}
    if options.tuner == "hyperband":  # as many iterations as there is time for
        length = {"max_epochs": options.epochs, "hyperband_iterations": None}
    if options.tuner == "bayesian":
        # The default, three for each hyperparameter, is often all trials.
        length["num_initial_points"] = max(3, options.max_trials // 3)

    class SearchTuner(Seeded, TUNERS[options.tuner]):
        """One of Keras Tuner's."""

    tuner = SearchTuner(
        hypermodel,
        objective=keras_tuner.Objective(options.objective, "max"),
        directory=str(options.out),
        project_name="trials",
        overwrite=False,
        seed=options.seed + 1,  # Keras Tuner takes 0 for a random seed
        **length,
    )
    tuner.oracle.max_trials = options.max_trials
    return tuner


def search(tuner: keras_tuner.Tuner, options: argparse.Namespace, tests: dict) -> None:
    images = trial_data.training(options)
    given = {"x": images, "validation_data": tests, "seed": options.seed}
    if options.parallel or options.ray:
        named = {name: getattr(options, name) for name in ("parallel", "cpus", "gpus")}
        search_on_ray(tuner, **given, address=options.ray, **named)
    else:
        # A progress bar on a terminal, one line for each epoch in a log file.
        tuner.search(**given, verbose=1 if sys.stdout.isatty() else 2)


def write(tuner: keras_tuner.Tuner, out: Path) -> None:
    """The table, the pictures and the best network."""
    text = report(tuner)
    if not trained_trials(tuner):
        raise RuntimeError(f"no network was trained. {text}")
    print(f"\n{text}\n")
    write_text(out / "trials.md", text + "\n")
    save_figure(plot_trials(tuner), out / "trials.png")
    (model,) = tuner.get_best_models(1)
    with atomic_write(out / "model.keras") as partial:
        model.save(partial)
    print(f"Table, pictures and the best network (model.keras) are in {out}")


if __name__ == "__main__":
    main()
