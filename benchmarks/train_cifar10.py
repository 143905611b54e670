"""Trains a network on CIFAR-10 in pieces, where there are no TensorFlow Datasets.

    python benchmarks/train_cifar10.py --pack cifar10 --data-dir ~/tensorflow_datasets
    KERAS_BACKEND=jax python benchmarks/train_cifar10.py cifar10/*.npz \\
        --out runs/cifar10 --max-minutes 10                     # again: it goes on

The first command, where TensorFlow Datasets and the images are, packs them without loss
into the files `cifar10/1_of_2.npz` and `cifar10/2_of_2.npz`, so that each is below
64 MiB. (60 000 images of 32×32×3 bytes are 176 MiB. Those that this was tried on, which
had been compressed as JPEG before, take 94 MiB in two files. LZMA would take 89 MiB, so
one file below 64 MiB cannot hold all; originals may take more, see `--parts`.) Each has
half of the training and half of the test images; with one file alone, the network is
trained and tested on these.

The second one trains the paper's network, or the small `--preset cifar10`, at size
factor 1 by the paper's recipe, in bfloat16 (`--precision float32` for full), and then
evaluates it at the nine size factors. A checkpoint of each epoch and the accuracies are
in `--out`; within `--max-minutes`, one epoch or one evaluation takes place at least.
The training is that of `keras_gdrn.training.fit`. Not measured on a GPU yet.
"""

import argparse
import dataclasses
import json
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import packed_images

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, SIZE_FACTORS, original_arrays, rescale
from keras_gdrn.evaluation import scale_generalization
from keras_gdrn.models import architecture
from keras_gdrn.training import RECIPES, OutOfTime, Recipe, TimeLimit, fit
from keras_gdrn.visualization import markdown_table

INFO = DATASETS["cifar10"]
SPLITS = {"train": "train+validation", "test": "test"}


def pack(folder: Path, data_dir: str | None, parts: int) -> None:
    """Writes the files, each with its part of the images of both splits."""
    splits = {
        name: original_arrays("cifar10", split, data_dir=data_dir)
        for name, split in SPLITS.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(parts):
        file = folder / f"{part + 1}_of_{parts}.npz"
        content = {
            name: tuple(np.array_split(array, parts)[part] for array in arrays)
            for name, arrays in splits.items()
        }
        packed_images.write(file, content)
        print(f"{file}: {file.stat().st_size / 2**20:.1f} MiB", flush=True)


def on_canvas(
    data: tuple[np.ndarray, np.ndarray], factor: float, side: int
) -> tuple[np.ndarray, np.ndarray]:
    """As `rescaled_arrays`: images in [0, 1] at a size factor, and labels."""
    images, labels = data
    images = rescale(images, factor, side, INFO.extension)
    images /= INFO.white
    return np.clip(images, 0.0, 1.0, out=images), labels.astype("int32")


def recipe_of(options: argparse.Namespace) -> Recipe:
    """The paper's, with as many epochs, and images in a batch, as asked for."""
    recipe = RECIPES["rescaled_cifar10"]
    epochs = options.epochs or recipe.epochs
    return dataclasses.replace(
        recipe,
        epochs=epochs,
        warmup_epochs=min(recipe.warmup_epochs, epochs - 1),
        batch_size=options.batch_size or recipe.batch_size,
    )


def train(options: argparse.Namespace, limit: TimeLimit) -> keras.Model:
    """The trained network, or `OutOfTime`."""
    keras.utils.set_random_seed(options.seed)
    model = architecture(options.preset)
    recipe = recipe_of(options)
    images = packed_images.read(options.files, "train")
    data = on_canvas(images, 1.0, model.input_shape[1])
    history = fit(
        model,
        recipe,
        data,
        out=options.out / "training",
        seed=options.seed,
        max_minutes=limit,
        verbose=2,
    )
    if len(history.epoch) < recipe.epochs:
        raise OutOfTime
    return model


def accuracies_in(file: Path) -> dict[str, float]:
    """The accuracies by size factor that are in a file; none if it is not there."""
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # neither UTF-8 nor JSON
        found = error
    if not isinstance(found, dict):
        raise ValueError(
            f"{file} must be accuracies by size factor, as JSON, and is damaged. "
            "Delete it, and the same command evaluates anew. "
            f"Received: {str(found)[:80]}"
        )
    return found


def evaluate(
    model: keras.Model, options: argparse.Namespace, limit: TimeLimit
) -> dict[str, float]:
    """The accuracies by size factor, those that are in the folder and the others."""
    file = options.out / "accuracies.json"
    found = accuracies_in(file)
    images = packed_images.read(options.files, "test")
    for factor in SIZE_FACTORS:
        if f"{factor:.3g}" in found:
            continue
        if limit.is_reached():
            raise OutOfTime
        begin = time.perf_counter()
        tests = on_canvas(images, factor, model.input_shape[1])
        result = scale_generalization(model, {factor: tests})
        found[f"{factor:.3g}"] = float(result.accuracies[0])
        whole = file.with_suffix(".partial")
        whole.write_text(json.dumps(found, indent=1) + "\n")
        whole.replace(file)  # an interruption leaves no half of it
        limit.took(time.perf_counter() - begin)
    return found


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*", help="of packed images")
    parser.add_argument("--pack", type=Path, help="folder to write such files into")
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument(
        "--parts", type=positive(int), default=2, help="how many files to pack"
    )
    parser.add_argument("--out", type=Path, help="folder of the run")
    parser.add_argument("--max-minutes", type=float, help="of this call")
    parser.add_argument(
        "--preset", choices=("rescaled_cifar10", "cifar10"), default="rescaled_cifar10"
    )
    parser.add_argument("--epochs", type=positive(int), help="by default the paper's")
    parser.add_argument(
        "--batch-size", type=positive(int), help="by default the paper's"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--precision", choices=("bfloat16", "float32"), default="bfloat16"
    )
    options = parser.parse_args()
    if not options.pack and not (options.files and options.out):
        parser.error("give --pack FOLDER, or packed files and --out FOLDER")
    return options


@errors_in_one_line()
def main() -> None:
    options = parsed_arguments()
    mixed = options.precision != "float32"
    keras.config.set_dtype_policy("mixed_bfloat16" if mixed else "float32")
    try:
        if options.pack:
            return pack(options.pack, options.data_dir, options.parts)
        limit = TimeLimit(options.max_minutes)
        accuracies = evaluate(train(options, limit), options, limit)
    except OutOfTime:
        return print("Out of time; the same command goes on.")
    cells = [f"{100 * accuracy:.2f} %" for accuracy in accuracies.values()]
    print(markdown_table([list(accuracies), cells]))


if __name__ == "__main__":
    main()
