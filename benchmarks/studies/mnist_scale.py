"""Digits of mixed sizes: MNIST-Scale, the common test of this literature.

    python benchmarks/studies/mnist_scale.py 0 1 2 3 4 5 --download
    python benchmarks/studies/mnist_scale.py 0 --augment
    python benchmarks/studies/mnist_scale.py 0 --validate

Trains a network with four scale channels on the 10 000 images of each realization, and
tests it on 50 000, or with `--validate` on the 2000 of the validation split. With
`--augment`, each training image comes in three more sizes, by factors of 1/√2 to √2.
Writes a record for each run into `--out` and prints the test error of all.
"""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from common import origin

from keras_gdrn.commands import errors_in_one_line, write_text
from keras_gdrn.data import mnist_scale, rescale
from keras_gdrn.models import count_parameters, gauss_der_resnet
from keras_gdrn.training import Recipe, fit

SIDE, WIDTHS, RATIO = 28, (12, 16, 16, 24, 24), 1.35
# From the largest digits to the smallest.
SCALES = (1.0, 0.667, 0.444, 0.3)
EPOCHS, COPIES = 8, 3


def network() -> keras.Model:
    shape = (SIDE, SIDE, 1)
    return gauss_der_resnet(shape, 10, WIDTHS, RATIO, SCALES)


def resized(images: np.ndarray, seed: int) -> np.ndarray:
    """The images, each by a random factor; what leaves the canvas is cut off."""
    factors = 2 ** np.random.default_rng(seed).uniform(-0.5, 0.5, len(images))
    pairs = zip(images, factors, strict=True)
    copies = [rescale(image, factor, SIDE, "zero") for image, factor in pairs]
    return np.clip(copies, 0, 1)


def run(realization: int, options) -> dict:
    where = {"data_dir": options.data_dir, "download": options.download}
    images, labels = mnist_scale("train", realization, **where)
    epochs = options.epochs
    if options.augment:
        copies = [resized(images, seed) for seed in range(COPIES)]
        images = np.concatenate([images, *copies])
        labels = np.tile(labels, 1 + COPIES)
        epochs = max(1, epochs // (1 + COPIES))  # as many steps
    keras.utils.set_random_seed(realization)
    model, data = network(), (images, labels)
    history = fit(
        model,
        Recipe(epochs, 32),
        data,
        out=options.out / name(realization, options),
        seed=realization,
        verbose=2,
    ).history
    split = "validation" if options.validate else "test"
    images, labels = mnist_scale(split, realization, **where)
    answers = model.predict(images, batch_size=100, verbose=0).argmax(-1)
    return {
        "realization": realization,
        "augmented": options.augment,
        "split": split,
        "error": float(np.mean(answers != labels)),
        "epochs": epochs,
        "parameters": count_parameters(model),
        "minutes of training": sum(history["seconds"]) / 60,
        **origin(),
    }


def name(realization: int, options) -> str:
    augmented = "-augmented" * options.augment
    return f"realization-{realization}{augmented}{'-validated' * options.validate}"


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("realizations", nargs="*", type=int, default=[0])
    add("--augment", action="store_true", help="training images in other sizes too")
    add("--validate", action="store_true", help="test on the validation split")
    add("--epochs", type=int, default=EPOCHS)
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--download", action="store_true", help="download MNIST if needed")
    add("--out", type=Path, default=Path("runs/mnist_scale"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    errors = []
    for realization in options.realizations:
        file = options.out / f"{name(realization, options)}.json"
        if not file.exists():
            text = json.dumps(run(realization, options), indent=1)
            write_text(file, text + "\n")
        record = json.loads(file.read_text(encoding="utf-8"))
        errors.append(100 * record["error"])
        print(f"{file.stem}: {errors[-1]:.2f} % of errors", flush=True)
    deviation = np.std(errors, ddof=1) if len(errors) > 1 else 0.0
    result = f"{np.mean(errors):.2f} ± {deviation:.2f}"
    print(f"{len(errors)} realizations: {result} % of errors")


if __name__ == "__main__":
    main()
