"""The options of a search."""

import argparse
from pathlib import Path

import keras_tuner

from keras_gdrn.commands import positive
from keras_gdrn.data import DATASETS
from keras_gdrn.tuning import SearchSpace

TUNERS = {
    "random": keras_tuner.RandomSearch,
    "hyperband": keras_tuner.Hyperband,
    "bayesian": keras_tuner.BayesianOptimization,
    "grid": keras_tuner.GridSearch,
}
OBJECTIVES = ("val_accuracy", "val_mean_accuracy", "val_min_accuracy")
SPACES = {
    "paper": None,  # the default for the size of the images
    # For two CPU cores.
    "small": SearchSpace(
        ratio=(1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5, 1.6),
        blocks=(2, 3, 4),
        stem_width=(8, 12),
        width=(8, 12, 16, 24),
        order=(2,),
        scale_dropout=(0.0, 0.2),
        sigma0_spacing=(2**0.5, 2.0),
        batch_size=(32, 64),
    ),
}


def parse(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, count = parser.add_argument, positive(int)
    add("--dataset", choices=list(DATASETS), default="digits")
    add("--tuner", choices=list(TUNERS), default="random")
    add("--space", choices=list(SPACES), default="small")
    add("--only", nargs="+", metavar="NAME", help="search these, fix all others")
    add("--objective", choices=OBJECTIVES, default="val_mean_accuracy")
    factors = (0.5, 2**-0.5, 1.0, 2**0.5, 2.0)
    add("--factors", type=float, nargs="+", default=factors, help="size factors")
    add("--max-trials", type=count, default=8)
    add("--epochs", type=count, default=4, help="of a trial; hyperband: at most")
    add("--single-scale-epochs", type=int, default=4, help="first, of one scale")
    add("--limit", type=count, help="number of training images")
    add("--validation-limit", type=count, default=500, help="images of each size")
    add("--canvas", type=count, help="side of the images in pixels")
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--download", action="store_true", help="download the data if needed")
    add("--out", type=Path, help="folder of the search")
    add("--seed", type=int, default=0)
    add("--parallel", type=count, metavar="N", help="trials at the same time")
    add("--ray", metavar="ADDRESS", help="address of a Ray cluster, or auto")
    add("--cpus", type=float, help="CPU cores of a trial, with --parallel or --ray")
    add("--gpus", type=float, help="GPUs of a trial; a fraction shares one")
    options = parser.parse_args()
    on_ray = options.parallel or options.ray
    if not on_ray and (options.cpus, options.gpus) != (None, None):
        parser.error("--cpus and --gpus need --parallel or --ray")
    if options.objective == "val_accuracy" and 1.0 not in options.factors:
        parser.error("val_accuracy needs size factor 1 in --factors")
    options.out = options.out or Path(f"runs/search-{options.dataset}-{options.tuner}")
    return options
