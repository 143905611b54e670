"""Trains a network of `from_preset` further, for any position or other grids.

    python benchmarks/studies/anywhere.py digits
    python benchmarks/studies/anywhere.py cifar10 --selection center --density 1
    python benchmarks/studies/anywhere.py cifar10_anywhere --sigma0 0.5 1 2

Continues the training with the spatial maximum in place of the center, or with
`--selection center` as it was: first one scale channel, then all of them on some of the
images. Tests it at nine size factors and, at size factor 1, on images shifted along
both axes, with their surroundings. For comparison, it also tests the original weights.
Prints a table, and saves the network and its card to `--out` for `from_preset`. After
an interruption, the same command resumes.
"""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
from common import origin, save_preset
from trained import NAMES, SHIFTS, tested

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, SIZE_FACTORS, rescaled
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models import (
    Card,
    from_preset,
    list_presets,
    only_layer,
)
from keras_gdrn.training import RECIPES, Augmentation, Recipe, Stage, train_in_stages
from keras_gdrn.visualization import markdown_table, size_label

AUGMENTATION = {"cifar10": replace(RECIPES["rescaled_cifar10"].augmentation, blur=1.0)}
ONE = (1.0,)


def trained(options) -> keras.Model:
    """Trained with one scale channel, then with all on fewer images."""
    model = from_preset(options.name, **options.changed, dtype=options.dtype)
    sigma0, shape = only_layer(model, ScaleChannels).sigma0, model.input_shape[1:]

    def images(stage: Stage):
        limit = options.limit if stage.sigma0 == ONE else options.joint_limit
        where = {"canvas": stage.input_shape[0], "data_dir": options.data_dir}
        return rescaled(options.data, "train+validation", limit=limit, **where)

    out = {"out": options.out / "training", "seed": options.seed, "verbose": 2}
    return train_in_stages(model, stages(options, sigma0, shape), images, **out)


def stages(options, sigma0: tuple, shape: tuple) -> list[Stage]:
    """One scale channel on each canvas, then all channels on each."""
    augmentation = AUGMENTATION.get(options.data, Augmentation())

    def recipe(epochs: int, rate: float) -> Recipe:
        size = options.batch_size
        return Recipe(epochs, size, learning_rate=rate, augmentation=augmentation)

    rate = options.learning_rate
    parts = [("all_channels", recipe(options.joint_epochs, rate / 2), sigma0)]
    if options.epochs:
        parts.insert(0, ("one_channel", recipe(options.epochs, rate), ONE))
    return [
        Stage(f"{name}_{side}", own, scales, (side, side, shape[-1]))
        for name, own, scales in parts
        for side in options.canvas or shape[:1]
    ]


def save(
    model: keras.Model, by_size: dict, by_shift: dict, count: int, options
) -> Path:
    info, before = DATASETS[options.data], list_presets()[options.name]
    size, side = info.unit * info.image_shape[0], model.input_shape[1]
    card = Card(
        data=f"{before.data}; then trained on {side}×{side} pixels",
        license=before.license,
        command=f"{' '.join(['python', *sys.argv])} (seed {options.seed}), from: "
        f"{before.command}",
        accuracy=by_size,
        test_images=count,
        object_sizes=(min(SIZE_FACTORS) * size, max(SIZE_FACTORS) * size),
        shift_accuracy=by_shift,
        shift_images=count,
        limits=f"As `{options.data}`, but that the object may be at any position."
        if options.selection == "max"
        else before.limits,
        **origin(),
    )
    folder = options.out / named(options)
    save_preset(model, folder, card)
    return folder


def named(options) -> str:
    return options.data + "_anywhere" * (options.selection == "max")


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, whole = parser.add_argument, positive(int)
    add("name", choices=NAMES)
    add("--selection", choices=("center", "max"), default="max")
    add("--density", type=positive(float), help="by default the preset's")
    add("--receptive-field", type=positive(float), help="by default the preset's")
    add("--sigma0", type=positive(float), nargs="+", help="by default the preset's")
    text = "sides of training images, one after another; by default the preset's"
    add("--canvas", type=whole, nargs="+", help=text)
    add("--epochs", type=int, default=2, help="of one scale channel; may be 0")
    add("--joint-epochs", type=whole, default=1, help="of all channels")
    add("--learning-rate", type=positive(float), default=0.003)
    add("--batch-size", type=whole, default=32)
    add("--limit", type=whole, help="training images of one scale channel")
    add("--joint-limit", type=whole, default=5000, help="images of all channels")
    add("--test-limit", type=whole, default=500, help="test images of each size")
    add("--dtype", help="of the trained network, such as mixed_bfloat16")
    add("--seed", type=int, default=0)
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--out", type=Path, help="by default runs/<name of the result>")
    options = parser.parse_args()
    options.data = options.name.removesuffix("_anywhere")
    options.out = options.out or Path("runs") / named(options)
    keras.utils.set_random_seed(options.seed)
    given = ("density", "receptive_field", "sigma0")
    changed = {name: value for name in given if (value := getattr(options, name))}
    options.changed = changed | {"spatial_selection": options.selection}
    networks = {
        "preset": from_preset(options.name),
        "changed": from_preset(options.name, **options.changed),
        "trained further": trained(options),
    }
    count = min(options.test_limit, DATASETS[options.data].size("test"))
    sizes, shifts = map(size_label, SIZE_FACTORS), (f"moved by {by}" for by in SHIFTS)
    rows = [["network", *sizes, *shifts]]
    for name, model in networks.items():
        by_size, by_shift = tested(model, options.data, count, count, options.data_dir)
        shares = (*by_size.values(), *by_shift.values())
        rows.append([name, *(f"{100 * share:.1f}" for share in shares)])
    folder = save(model, by_size, by_shift, count, options)
    print(f"\n{markdown_table(rows)}\n\nNetwork and card are in {folder}")


if __name__ == "__main__":
    main()
