"""Chooses the density and the windows of the grids, on validation images.

    python benchmarks/studies/sampling.py fashion_mnist --data-dir ~/tensorflow_datasets
    python benchmarks/studies/sampling.py cifar10 --only 1/2 --seeds 0 1 2
    python benchmarks/studies/sampling.py cifar10 --only 1/1.5 1.4/1.5 --all-images

Trains a small network for each setting, "density/receptive field": first one scale
channel on 10 000 images, then all six on 5000, or both on all images. Tests it on
validation images of five sizes. Prints a table and adds the runs to a record in
`--out`; runs that the record has are not repeated.
"""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from common import origin, spread

from keras_gdrn.commands import errors_in_one_line, write_text
from keras_gdrn.data import DATASETS, rescaled
from keras_gdrn.evaluation import scale_generalization
from keras_gdrn.models import SIX_SCALES, gauss_der_resnet, with_input_shape
from keras_gdrn.training import RECIPES, Augmentation, Recipe, Stage, train_in_stages
from keras_gdrn.visualization import markdown_table, size_label

SETTINGS = (
    *("1/2.5", "0.7/2.5", "1/2", "1/1.5", "0.7/2", "2/2.5"),
    *("0.7/1.5", "1.4/1.5", "2/1.5"),
)
FACTORS = (0.5, 2**-0.5, 1.0, 2**0.5, 2.0)
# Widths, ratio, side of the training images, epochs of one channel.
NETWORKS = {
    "fashion_mnist": ((12, 16, 16, 24, 24), 1.35, 36, 6),
    "mnist": ((12, 16, 16, 24, 24), 1.35, 36, 6),
    "cifar10": ((16, 24, 32, 48), 1.6, 48, 10),
}
IMAGES, JOINT_IMAGES, TEST_IMAGES = 10000, 5000, 2000
AUGMENTATION = {"cifar10": RECIPES["rescaled_cifar10"].augmentation}


def accuracies(name: str, density: float, field: float, seed: int, options) -> list:
    """Trains, and returns the validation accuracy at each size factor."""
    widths, ratio, side, epochs = NETWORKS[name]
    augmentation = AUGMENTATION.get(name, Augmentation())
    keras.utils.set_random_seed(seed)
    info = DATASETS[name]
    shape = side, side, info.image_shape[-1]
    model = gauss_der_resnet(
        shape,
        info.classes,
        widths,
        ratio,
        SIX_SCALES,
        boundary="symmetric",
        density=density,
        receptive_field=field,
    )
    stages = [
        Stage("one", Recipe(epochs, 64, 0.01, augmentation=augmentation), (1.0,)),
        Stage("six", Recipe(1, 32, 0.005, augmentation=augmentation), SIX_SCALES),
    ]
    limits = {} if options.all_images else {"one": IMAGES, "six": JOINT_IMAGES}
    where = {"data_dir": options.data_dir}

    def images(stage: Stage):
        limit = limits.get(stage.name)
        return rescaled(name, "train", canvas=side, limit=limit, **where)

    model = train_in_stages(model, stages, images, seed=seed, verbose=0)
    canvas = info.test_canvas
    model = with_input_shape(model, (canvas, canvas, shape[-1]))
    where |= {"canvas": canvas, "limit": TEST_IMAGES}
    tests = {
        f: rescaled(name, "validation", f, batch_size=50, **where) for f in FACTORS
    }
    return scale_generalization(model, tests).accuracies.tolist()


def report(runs: list[dict]) -> str:
    """The mean and the standard deviation over seeds, in percent."""
    rows = [["density/receptive field", *map(size_label, FACTORS), "mean", "seeds"]]
    for setting in dict.fromkeys(run["setting"] for run in runs):
        of = [100 * np.array(r["accuracies"]) for r in runs if r["setting"] == setting]
        means = [f"{mean:.1f}" for mean in np.mean(of, axis=0)]
        rows.append([setting, *means, spread(np.mean(of, axis=1)), str(len(of))])
    return markdown_table(rows)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("data", choices=NETWORKS)
    add("--only", nargs="+", choices=SETTINGS, default=SETTINGS, metavar="D/Q")
    add("--seeds", nargs="+", type=int, default=[0])
    add("--all-images", action="store_true", help="in both stages")
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--out", type=Path, default=Path("runs/sampling"))
    options = parser.parse_args()
    file = options.out / f"{options.data}{'_all' * options.all_images}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    runs = json.loads(file.read_text("utf-8")) if file.exists() else []
    done = {(run["setting"], run["seed"]) for run in runs}
    for seed in options.seeds:
        for setting in options.only:
            if (setting, seed) in done:
                continue
            density, field = map(float, setting.split("/"))
            found = accuracies(options.data, density, field, seed, options)
            run = {"setting": setting, "seed": seed, "accuracies": found, **origin()}
            runs.append(run)
            write_text(file, json.dumps(runs, indent=1) + "\n")
            print(report(runs), flush=True)


if __name__ == "__main__":
    main()
