"""Alternatives on natural images: a plain network, trained further.

    python examples/paper/reproduce.py cifar10_plain --budget large
    python benchmarks/studies/natural_peers.py runs/cifar10_plain-large cifar10

From the weights of a run that was trained at one size only:

- `foveated`: the network on the image at five sizes, 1/2 to 2, with the largest of all
  scores (Jansson & Lindeberg), as it is and after one more epoch of 10 000 images;
- `resized`: five more epochs, each image at one of nine sizes, 1/2 to 2.

Each is tested at nine size factors, with as much around the object as its views see.
Prints a table and writes it, with the networks, to runs/natural_peers. After an
interruption, the same command resumes.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from foveation import Foveation

from keras_gdrn.commands import atomic_write, errors_in_one_line, positive, write_text
from keras_gdrn.data import DATASETS, SIZE_FACTORS, original_arrays, rescale, rescaled
from keras_gdrn.evaluation import scale_generalization
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.training import RECIPES, Recipe, fit
from keras_gdrn.visualization import markdown_table, size_label

VIEWS = tuple(2 ** (k / 2) for k in range(-2, 3))
SPLIT = "train+validation"
FEW = 10_000  # images for several views


def foveated(plain: keras.Model) -> keras.Model:
    """The largest score of the network on all views, on a canvas that holds them."""
    side = plain.input_shape[1]
    canvas = round(side * max(VIEWS))
    image = keras.Input((canvas, canvas, plain.input_shape[-1]))
    channel = keras.Model(image, plain(Foveation(side)(image)))
    scores = ScaleChannels(channel, VIEWS, density=None)(image)
    return keras.Model(image, ScalePooling("max")(scores))


def resized(name: str, side: int, limit: int | None, data_dir: str | None) -> tuple:
    """All images of a data set, each at one of the nine sizes."""
    info = DATASETS[name]
    originals, labels = original_arrays(name, SPLIT, limit=limit, data_dir=data_dir)
    images = np.empty((len(labels), side, side, info.image_shape[-1]), "float32")
    for first, factor in enumerate(SIZE_FACTORS):
        which = slice(first, None, len(SIZE_FACTORS))
        made = rescale(
            originals[which], factor * info.unit, (side, side), info.extension
        )
        images[which] = np.clip(made / info.white, 0, 1)
    return images, labels


def recipe(epochs: int) -> Recipe:
    """As the second stage of the package's network."""
    known = RECIPES["rescaled_cifar10_second_stage"]
    augmentation = replace(known.augmentation, padding=4)
    return replace(
        known,
        augmentation=augmentation,
        epochs=epochs,
        batch_size=32,
        warmup_epochs=0,
    )


def tested(model: keras.Model, options) -> list[float]:
    """Accuracies in percent at each size, and their mean."""
    where = {"canvas": model.input_shape[1], "data_dir": options.data_dir}
    where |= {"limit": options.test_limit, "batch_size": 50}
    tests = {f: rescaled(options.dataset, "test", f, **where) for f in SIZE_FACTORS}
    accuracies = 100 * np.array(scale_generalization(model, tests).accuracies)
    return [*accuracies, accuracies.mean()]


def contenders(options) -> Iterator[tuple]:
    """Names, networks, and the epochs and images of their further training."""

    def plain() -> keras.Model:
        return keras.saving.load_model(options.run / "model.keras", compile=False)

    yield "plain", plain(), 0, None
    yield "foveated as it is", foveated(plain()), 0, None
    views, limit = foveated(plain()), options.limit
    where = {"canvas": views.input_shape[1], "data_dir": options.data_dir}
    few = min(FEW, limit or FEW)
    yield "foveated", views, 1, rescaled(options.dataset, SPLIT, limit=few, **where)
    side = plain().input_shape[1]
    yield "resized", plain(), 5, resized(options.dataset, side, limit, options.data_dir)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, count = parser.add_argument, positive(int)
    add("run", type=Path, help="folder of a plain network's run")
    add("dataset", choices=DATASETS)
    add("--limit", type=count, help="training images")
    add("--test-limit", type=count, help="test images of each size")
    add("--seed", type=int, default=0)
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--out", type=Path, default=Path("runs/natural_peers"))
    options = parser.parse_args()
    rows = [["network", *map(size_label, SIZE_FACTORS), "mean", "trained on (s)"]]
    for name, model, epochs, data in contenders(options):
        seconds, out = 0, options.out / name.replace(" ", "_")
        if epochs:
            run = fit(
                model, recipe(epochs), data, out=out, seed=options.seed, verbose=2
            )
            seconds = sum(run.history["seconds"])
        accuracies = (f"{share:.1f}" for share in tested(model, options))
        rows.append([name, *accuracies, f"{seconds:.0f}"])
        out.mkdir(parents=True, exist_ok=True)
        with atomic_write(out / "model.keras") as partial:
            model.save(partial)
        text = markdown_table(rows)
        write_text(options.out / "results.md", f"{text}\n")
    print(f"\nAccuracy at each size (training: 1)\n\n{text}")


if __name__ == "__main__":
    main()
