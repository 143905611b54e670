"""Alternatives on digits: in the center, or at any position among clutter.

    python benchmarks/studies/peers.py centered             # 797 test images, 9 sizes
    python benchmarks/studies/peers.py cluttered --only gauss_der cnn --seeds 0 1 2
    python benchmarks/studies/peers.py centered --tries     # on validation images
    python benchmarks/studies/peers.py centered --times     # of one image, untrained

Each network is trained on 1000 images of scikit-learn's digits at size factor 1 (20×20
pixels) and tested on 797 others at nine size factors: `centered` on a canvas of 40×40,
`cluttered` at any position on one of 64×64, among pieces of other digits. All have some
9000 parameters, the optimizer, schedule and loss of `Recipe` and, for `cluttered`, the
maximum over all positions:

- `gauss_der`: the package's network, six scale channels;
- `on_pixels`: the same, evaluated as in the paper (`density=None`);
- `cnn`: 3×3 convolutions and halvings;
- `cnn_resized`: the same, trained on each image at ten sizes, 1/2 to 2;
- `foveated`: the same on the image at seven sizes, 1/2 to 2 and beyond, with the
  largest of all scores (Jansson & Lindeberg).

`--tries` served to choose the settings: it trains with each of three on 800 of the
training images, and prints the mean accuracy on the other 200 over the nine sizes.
Prints a table, with the processor's seconds of training, and writes each run into
runs/peers, from where the same command goes on after an interruption.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from common import lit, origin, spread
from foveation import Foveation
from keras import layers

from keras_gdrn.commands import errors_in_one_line, positive, write_text
from keras_gdrn.data import SIZE_FACTORS, rescaled_arrays
from keras_gdrn.evaluation import scale_generalization
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import SIX_SCALES, architecture
from keras_gdrn.training import Recipe, Stage, train_in_stages
from keras_gdrn.visualization import markdown_table, size_label

CANVAS = {"centered": 40, "cluttered": 64}
CLASSES, ATTEMPTS = 10, 20  # to find a place for a piece
VIEWS = tuple(2 ** (k / 2) for k in range(-3, 4))
COPIES = 10
HELD_OUT = 200  # training images that judge a try


class Setting(NamedTuple):
    """Epochs at one scale and then at all, and the highest learning rate."""

    first: int
    joint: int
    learning_rate: float = 0.01


class Network(NamedTuple):
    build: Callable[[str], keras.Model]
    settings: tuple[Setting, ...]  # the chosen one of each task is in `CHOSEN`
    scales: tuple[float, ...] | None = None  # of its scale channels
    resized: bool = False


def gauss_der(task: str, **options) -> keras.Model:
    if task == "cluttered":
        options |= {"spatial_selection": "max"}
    side = CANVAS[task]
    return architecture("digits", input_shape=(side, side, 1), **options)


def cnn(task: str) -> keras.Model:
    return plain(CANVAS[task], (8, 12, 16, 16), task)


def foveated(task: str) -> keras.Model:
    """The largest score of all views; for centered digits, views of 28×28 pixels."""
    side = CANVAS[task]
    size = 28 if task == "centered" else side
    image = keras.Input((side, side, 1))
    channel = plain(size, (8, 12, 16, 24), task)(Foveation(size)(image))
    views = ScaleChannels(keras.Model(image, channel), VIEWS, density=None)
    return keras.Model(image, ScalePooling("max")(views(image)))


def plain(side: int, filters: tuple[int, ...], task: str) -> keras.Model:
    """A CNN with three halvings; a dense layer if centered, else a global maximum.

    With the maximum it has another convolution instead of the dense layer's weights.
    """
    x = image = keras.Input((side, side, 1))
    centered = task == "centered"
    for index, width in enumerate(filters if centered else (*filters[:3], 20, 20)):
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x))
        x = layers.MaxPooling2D(2)(x) if 0 < index < 4 else x
    if centered:
        return keras.Model(image, layers.Dense(CLASSES)(layers.Flatten()(x)))
    scores = layers.Conv2D(CLASSES, 1)(x)
    return keras.Model(image, layers.GlobalMaxPooling2D()(scores))


STAGES = Setting(8, 1), Setting(8, 4), Setting(0, 8)
LONG = Setting(0, 60), Setting(0, 60, 0.003), Setting(0, 20)
NETWORKS = {
    "gauss_der": Network(gauss_der, STAGES, SIX_SCALES),
    "on_pixels": Network(partial(gauss_der, density=None), STAGES, SIX_SCALES),
    "cnn": Network(cnn, LONG),
    "cnn_resized": Network(
        cnn, (Setting(0, 12), Setting(0, 12, 0.003), Setting(0, 4)), None, True
    ),
    "foveated": Network(
        foveated, (Setting(20, 20), Setting(20, 4), Setting(0, 20)), VIEWS
    ),
}
OURS = {"gauss_der": 1, "on_pixels": 1}  # the former was not tried separately
CHOSEN = {
    "centered": {**OURS, "cnn": 2, "cnn_resized": 0, "foveated": 0},
    "cluttered": {**OURS, "cnn": 0, "cnn_resized": 0, "foveated": 0},
}


def images_of(task: str, split: str, factor: float, limit: int | None) -> tuple:
    """Images of digits at a size factor, and their labels."""
    where = {"canvas": CANVAS[task], "limit": limit}
    images, labels = rescaled_arrays("digits", split, factor, **where)
    if task == "cluttered":
        random = np.random.default_rng([split == "test", round(1000 * factor)])
        images = np.stack([cluttered(random, images, n) for n in range(len(images))])
    return images, labels


def cluttered(random: np.random.Generator, images: np.ndarray, n: int) -> np.ndarray:
    """The digit at a random position, and pieces of others, half as large, around."""
    canvas = images.shape[1]
    digit = boxed(images[n])
    image, taken = np.zeros_like(images[n]), np.zeros(images[n].shape[:2], bool)
    y, x = (random.integers(canvas + 1 - size) for size in digit.shape[:2])
    image[y : y + len(digit), x : x + digit.shape[1]] = digit
    taken[y : y + len(digit), x : x + digit.shape[1]] = True
    side = len(digit) // 2
    for other in random.integers(len(images), size=ATTEMPTS):
        top, left, y, x = random.integers((side, side, *[canvas + 1 - side] * 2))
        place = slice(y, y + side), slice(x, x + side)
        piece = boxed(images[other])[top : top + side, left : left + side]
        if not taken[place].any() and piece.shape[:2] == (side, side):
            image[place], taken[place] = piece, True
    return image


def boxed(image: np.ndarray) -> np.ndarray:
    """The part of an image that is not black."""
    return image[lit(image)]


def training_images(task: str, is_resized: bool, count: int) -> tuple:
    factors = np.geomspace(0.5, 2, COPIES) if is_resized else (1.0,)
    parts = [images_of(task, "train", factor, count) for factor in factors]
    images, labels = map(np.concatenate, zip(*parts, strict=True))
    return images, labels


def trained(
    network: Network, options, setting: Setting, count: int, seed: int
) -> keras.Model:
    keras.utils.set_random_seed(seed)
    model, rate = network.build(options.task), setting.learning_rate

    def recipe(epochs: int, rate: float) -> Recipe:
        return Recipe(options.epochs or epochs, 32, learning_rate=rate)

    if setting.first:
        one = Stage("one scale", recipe(setting.first, rate), (1.0,))
        stages = [one, Stage("all", recipe(setting.joint, rate / 2), network.scales)]
    else:
        stages = [Stage("all", recipe(setting.joint, rate), network.scales)]
    data = training_images(options.task, network.resized, count)
    return train_in_stages(model, stages, data, seed=seed, verbose=2)


def compare_settings(name: str, options) -> None:
    """Prints the mean accuracy on held-out images, for each setting."""
    network, count = NETWORKS[name], options.limit or 1000
    kept = count - (HELD_OUT if count > HELD_OUT else 1)
    tests = {}
    for factor in SIZE_FACTORS:
        images, labels = images_of(options.task, "train", factor, count)
        tests[factor] = images[kept:], labels[kept:]
    for setting in network.settings:
        model = trained(network, options, setting, kept, options.seeds[0])
        accuracies = scale_generalization(model, tests).accuracies
        print(
            f"{name}, {setting}: {accuracies.mean():.4f}, worst {accuracies.min():.3f}"
        )


def tested(name: str, options, seed: int) -> dict:
    """Accuracy at each size, and the processor's seconds of training."""
    network = NETWORKS[name]
    setting = network.settings[CHOSEN[options.task][name]]
    begin = time.process_time()
    model = trained(network, options, setting, options.limit or 1000, seed)
    training = time.process_time() - begin
    where = options.task, "test"
    tests = {f: images_of(*where, f, options.limit) for f in SIZE_FACTORS}
    accuracies = scale_generalization(model, tests).accuracies
    return {
        "accuracies": [round(float(a), 4) for a in accuracies],
        "training (s)": round(training, 1),
        **origin(),
    }


def times(options) -> dict:
    """Milliseconds of an image in batches of 50, of all networks in turn."""
    images, _ = images_of(options.task, "test", 1.0, 50)
    models = {name: NETWORKS[name].build(options.task) for name in options.only}
    seconds: dict[str, list] = {name: [] for name in models}
    for _ in range(10):
        for name, model in models.items():
            begin = time.perf_counter()
            model.predict_on_batch(images)
            seconds[name].append(time.perf_counter() - begin)
    # The first time, a network is compiled.
    medians = {name: np.median(each[1:]) for name, each in seconds.items()}
    each = {n: round(1000 * float(t) / len(images), 2) for n, t in medians.items()}
    return {"an image (ms)": each, **origin()}


def row(found: list[dict]) -> list[str]:
    """Percent at each size, their mean and the worst; seconds of training."""
    percent = 100 * np.array([run["accuracies"] for run in found])
    columns = [*percent.T, percent.mean(axis=1), percent.min(axis=1)]
    return list(map(spread, [*columns, [run["training (s)"] for run in found]]))


def compare(options) -> None:
    """Trains and tests the networks, or goes on; prints the table."""
    file = options.out / f"{options.task}.json"
    runs = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    sizes = [size_label(factor) for factor in SIZE_FACTORS]
    rows = [["network", *sizes, "mean", "worst", "training (s)"]]
    for name in options.only:
        found = []
        for seed in options.seeds:
            which = {
                "network": name,
                "seed": seed,
                "limit": options.limit,
                "epochs": options.epochs,
            }
            done = [run for run in runs if which.items() <= run.items()]
            if not done:
                runs += (done := [{**which, **tested(name, options, seed)}])
                write_text(file, json.dumps(runs, indent=1) + "\n")
            found += done
        rows.append([name, *row(found)])
    print(f"\nAccuracy at each size (training: 1)\n\n{markdown_table(rows)}")
    print(
        f"\nSingle runs are in {file}; the same command goes on after an interruption"
    )


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, count = parser.add_argument, positive(int)
    add("task", choices=CANVAS)
    add("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    add("--seeds", type=int, nargs="+", default=[0])
    add("--tries", action="store_true", help="try settings on validation images")
    add("--times", action="store_true", help="time predictions of untrained networks")
    add("--epochs", type=count, help="of each stage")
    add("--limit", type=count, help="images of each data set")
    add("--out", type=Path, default=Path("runs/peers"))
    options = parser.parse_args()
    if options.tries:
        for name in options.only:
            compare_settings(name, options)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    if options.times:
        found = times(options)
        file = options.out / f"{options.task}_times.json"
        write_text(file, json.dumps(found, indent=1) + "\n")
        return print(f"Milliseconds of an image: {found['an image (ms)']}, in {file}")
    compare(options)


if __name__ == "__main__":
    main()
