"""Searches for the ratio, the widths, the pooling and more, by Keras Tuner.

    python tuning/search.py
    python tuning/search.py --dataset mnist --data-dir data --tuner bayesian \\
        --max-trials 30 --max-minutes 120 --limit 5000

The first takes some minutes on two cores. The folder `--out` (by default
`runs/search-<dataset>-<tuner>`) gets the trials, a table of the best ones (trials.md),
pictures of all (trials.png) and the best network, which examples/evaluate.py tests:

    python examples/evaluate.py runs/search-digits-random/model.keras --dataset digits

The same command goes on after an interruption, and with more `--max-trials` after the
end. By default each trial trains one scale channel, and tests the network with all of
them that is made from it; `--single-scale-epochs` below `--epochs` trains that too.

On several machines that see one folder `--out`, each runs the same command, but for its
role: one the chief, at whose address it listens, and any number a worker.

    python tuning/search.py --out found --role chief --chief 192.0.2.1:5000
    python tuning/search.py --out found --role worker --chief 192.0.2.1:5000

Workers may come and go. The chief, which needs no GPU, gives out the trials, keeps
`--max-trials` and `--max-minutes`, and writes the results. A worker that is silent for
`--patience` minutes is given up, and its trial is given out once more. So long, too,
the chief waits for workers and a worker for the chief. A chief that was killed goes on
by the same command. It answers only calls with the token that is in the folder, in a
file of its user's; nothing is encrypted, so the network must be a private one.

The objective is of validation images, which are rescaled to the `--factors`. Where a
data set has no validation split (digits, stl10_original), the last fifth of its
training part is held out.
"""

import argparse
import dataclasses
import os
import sys
from pathlib import Path

# Otherwise TensorFlow greets a machine without a GPU by several lines of errors.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import keras_tuner
from gdrn_search import trial_data
from gdrn_search.callers import make_token, read_token
from gdrn_search.checked import Checked
from gdrn_search.chief import NoWorkers, serve
from gdrn_search.keras_tuner_internals import mend_keras_tuner, mend_reloaded
from gdrn_search.options import SPACES, TUNERS, parse
from gdrn_search.seeded import Seeded
from gdrn_search.state import check_state
from gdrn_search.timed import Timed
from gdrn_search.worker import Worker, find_chief, follow

from keras_gdrn.commands import errors_in_one_line
from keras_gdrn.data import DATASETS
from keras_gdrn.training import (
    RECIPES,
    OutOfTime,
    Recipe,
    TimeLimit,
    claim_folder,
    lock_folder,
)
from keras_gdrn.tuning import (
    GaussDerResNetHyperModel,
    plot_trials,
    report,
    trained_trials,
)

# The recipe whose augmentation suits the images; digits are not augmented.
AUGMENTED = {
    "fashion_mnist": "rescaled_fashion_mnist",
    "cifar10": "rescaled_cifar10",
    "stl10": "rescaled_stl10",
    "stl10_original": "stl10",
}


@errors_in_one_line(RuntimeError)
def main() -> None:
    options = parse(__doc__)
    keras.utils.set_random_seed(options.seed)
    mend_keras_tuner()
    hypermodel = make_hypermodel(options)
    {None: alone, "chief": lead, "worker": work}[options.role](options, hypermodel)


def alone(options: argparse.Namespace, hypermodel: GaussDerResNetHyperModel) -> None:
    """The whole search on this machine."""
    tests = trial_data.validation(options)
    with lock_folder(options.out):
        claim_folder(options.out, settings(options, hypermodel))
        tuner = make_tuner(options, hypermodel)
        try:
            search(tuner, options, tests)
        except OutOfTime as reason:
            print(f"{reason}; the same command goes on")
        write(tuner, options.out)


def lead(options: argparse.Namespace, hypermodel: GaussDerResNetHyperModel) -> None:
    """The chief's part of a search on several machines."""
    patience = 60 * options.patience
    with lock_folder(options.out):  # the workers need none: each has its own trials
        claim_folder(options.out, settings(options, hypermodel))
        token = make_token(options.out)
        tuner = make_tuner(options, hypermodel)
        try:
            serve(tuner, options.chief, token, patience, tuner.limit)
        except OutOfTime as reason:
            print(f"{reason}; the same commands go on")
        except NoWorkers:
            if trained_trials(tuner):
                write(tuner, options.out)
            raise
        write(tuner, options.out)


def work(options: argparse.Namespace, hypermodel: GaussDerResNetHyperModel) -> None:
    """A worker's part of a search on several machines."""
    patience = 60 * options.patience
    channel = find_chief(options.chief, patience)
    token = read_token(options.out)
    claim_folder(options.out, settings(options, hypermodel))
    tests = trial_data.validation(options)
    tuner = make_tuner(options, hypermodel)
    follow(tuner, channel, token, patience)
    search(tuner, options, tests)
    print("The search is over; the chief has the results")


def settings(options: argparse.Namespace, hypermodel: GaussDerResNetHyperModel) -> dict:
    """All that decides the result, but for how long the search goes on."""
    given = dict(vars(options))
    for name in (
        *("out", "data_dir", "max_trials", "max_minutes"),
        *("role", "chief", "patience"),
    ):
        del given[name]
    return {
        **given,
        "space": dataclasses.asdict(hypermodel.space),
        "recipe": dataclasses.asdict(hypermodel.base_recipe),
    }


def recipe(options: argparse.Namespace) -> Recipe:
    if options.dataset not in AUGMENTED:
        return Recipe(options.epochs, 32)
    paper = RECIPES[AUGMENTED[options.dataset]]
    warmup = options.epochs * paper.warmup_epochs // paper.epochs
    return dataclasses.replace(paper, epochs=options.epochs, warmup_epochs=warmup)


def make_hypermodel(options: argparse.Namespace) -> GaussDerResNetHyperModel:
    space = SPACES[options.space]
    info = DATASETS[options.dataset]
    side = options.canvas or info.canvas
    return GaussDerResNetHyperModel(
        (side, side, info.image_shape[-1]),
        info.classes,
        space=space.only(*options.only) if options.only else space,
        recipe=recipe(options),
        single_scale_epochs=options.single_scale_epochs,
        max_parameters=options.max_parameters,
        max_multiply_adds=options.max_multiply_adds,
    )


def make_tuner(
    options: argparse.Namespace, hypermodel: GaussDerResNetHyperModel
) -> keras_tuner.Tuner:
    length = {"max_trials": options.max_trials}
    if options.tuner == "hyperband":  # as many iterations as there is time for
        length = {"max_epochs": options.epochs, "hyperband_iterations": None}
    if options.tuner == "bayesian":
        # By default three for each hyperparameter are drawn, which is often all.
        length["num_initial_points"] = max(3, options.max_trials // 3)
    is_worker = options.role == "worker"
    if not is_worker:
        check_state(options.out / "trials")
    parts = (Timed, Seeded, Checked, TUNERS[options.tuner])
    tuner = type("SearchTuner", (Worker, *parts) if is_worker else parts, {})(
        hypermodel,
        objective=keras_tuner.Objective(options.objective, "max"),
        directory=str(options.out),
        project_name="trials",
        overwrite=False,
        seed=options.seed + 1,  # Keras Tuner takes 0 for any seed
        **length,
    )
    if not is_worker:
        mend_reloaded(tuner.oracle)
    tuner.oracle.max_trials = options.max_trials
    # The chief keeps the time of its workers.
    tuner.limit = TimeLimit(None if is_worker else options.max_minutes)
    return tuner


def search(tuner: keras_tuner.Tuner, options: argparse.Namespace, tests: dict) -> None:
    tuner.search(
        trial_data.training(options),
        validation_data=tests,
        seed=options.seed,
        # A progress bar on a terminal, one line for each epoch in a log file.
        verbose=1 if sys.stdout.isatty() else 2,
    )


def write(tuner: keras_tuner.Tuner, out: Path) -> None:
    """The table, the pictures and the best network."""
    text = report(tuner)
    if not trained_trials(tuner):
        raise RuntimeError(f"no network was trained. {text}")
    print(f"\n{text}\n")
    (out / "trials.md").write_text(text + "\n", encoding="utf-8")
    plot_trials(tuner).savefig(out / "trials.png")
    (model,) = tuner.get_best_models(1)
    model.save(out / "partial.keras")
    os.replace(out / "partial.keras", out / "model.keras")
    print(f"Table, pictures and the best network (model.keras) are in {out}")


if __name__ == "__main__":
    main()
