"""Tests the trained networks that come with the package, and renews their cards.

    python benchmarks/studies/trained.py digits mnist --data-dir ~/tensorflow_datasets
    python benchmarks/studies/trained.py cifar10 --limit 200 --dry-run

Each network is tested as it runs now: on objects of nine sizes, in the center, and at
the size of its training on images that are shifted along both axes. The number of test
images is that of its card.
"""

import argparse
import dataclasses
import datetime
import os
from functools import partial
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

from keras_gdrn import models
from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, SIZE_FACTORS, rescaled, rescaled_arrays
from keras_gdrn.evaluation import scale_generalization, shift_accuracies
from keras_gdrn.models._card import write_card

FOLDER = Path(models.__file__).parent / "trained"
SHIFTS = (0, 4, 8, 12)  # pixels along both axes
CANVAS = {"cifar10": 96}  # other networks see no more than the data set's canvas
NAMES = [
    *("digits", "mnist", "fashion_mnist", "cifar10"),
    *("digits_anywhere", "cifar10_anywhere"),
]


def tested(
    model, data: str, images: int, shift_images: int, data_dir, canvas: int = 0
) -> tuple[dict, dict]:
    """Accuracies of a network by size factor, and by shift, as they are on its card."""
    *sides, channels = model.input_shape[1:]
    side = max(canvas, DATASETS[data].test_canvas, *sides)
    model = models.with_input_shape(model, (side, side, channels))
    read = partial(
        rescaled, canvas=side, limit=images, batch_size=25, data_dir=data_dir
    )
    by_size = {}
    for factor in SIZE_FACTORS:  # which take minutes each, for large networks
        found = scale_generalization(model, {factor: read(data, "test", factor)})
        by_size[f"{factor:.4g}"] = round(float(found.accuracies[0]), 4)
        print(f"size factor {factor:.3g}: {found.accuracies[0]:.1%}", flush=True)
    return by_size, shifted(model, data, shift_images, data_dir)


def shifted(model, data: str, images: int, data_dir) -> dict:
    """Accuracies of a network on shifted images, as they are on its card."""
    around = {"canvas": model.input_shape[1] + 2 * max(SHIFTS), "limit": images}
    moved = rescaled_arrays(data, "test", **around, data_dir=data_dir)
    found = shift_accuracies(model, *moved, SHIFTS)
    return {str(by): round(share, 4) for by, share in found.items()}


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("names", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    add("--limit", type=positive(int), help="test images; by default the card's")
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--dry-run", action="store_true", help="print the card, and leave it as it is")
    options = parser.parse_args()
    for name in options.names:
        card = models.list_presets()[name]
        counts = card.test_images, card.shift_images
        images, moved = (min(options.limit or n, n) for n in counts)
        model, data = models.from_preset(name), name.removesuffix("_anywhere")
        by_size, by_shift = tested(
            model, data, images, moved, options.data_dir, CANVAS.get(name, 0)
        )
        card = dataclasses.replace(
            card,
            accuracy=by_size,
            test_images=images,
            shift_accuracy=by_shift,
            shift_images=moved,
            test_date=datetime.date.today().isoformat(),
        )
        print(card.markdown(name))
        if not options.dry_run:
            write_card(card, FOLDER / name, name)


if __name__ == "__main__":
    main()
