"""Makes a trained network that comes with the package, and its card, from a run.

    python examples/make_trained.py runs/mnist-small mnist --data-dir data
    python examples/make_trained.py runs/digits_max-small digits --out /tmp/trained

The run is a folder of `reproduce.py`; NAME is the architecture, which must be the
run's. The network is tested on the whole test set at each of the nine sizes, unless the
run has done so (`--budget medium`), and on some images that are moved off the center.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from common import evaluate, test_sets  # first: it keeps TensorFlow quiet

# isort: split
import keras
import numpy as np
from sources import add_source, source_of

import keras_gdrn.models
from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, SIZE_FACTORS
from keras_gdrn.models import (
    Card,
    Preprocess,
    architecture,
    save_to_preset,
    with_input_shape,
    with_preprocess,
)

FOLDER = Path(keras_gdrn.models.__file__).parent / "trained"
SHIFTS = (0, 4, 8, 12)  # pixels along both axes

DATA = {
    "digits": "scikit-learn's handwritten digits of 8×8 pixels, enlarged to 20×20; the "
    "first 1000 to train on, the last 797 to test on",
    "mnist": "MNIST: 60 000 images to train on, 10 000 to test on",
    "cifar10": "CIFAR-10, a copy whose images had been compressed by JPEG: 50 000 to "
    "train on, 10 000 to test on",
}
_OTHER_DIGITS = (
    "Digits that are more than a few pixels off the center of the image, several in "
    "one image, dark ones on a bright ground, and sizes beyond those above."
)
LIMITS = {
    "digits": _OTHER_DIGITS,
    "mnist": _OTHER_DIGITS,
    "cifar10": "Photographs of anything else than the ten classes, objects more than a "
    "few pixels off the center of the image or of other sizes than those above, and "
    "any use that depends on the answer.",
}


@errors_in_one_line()
def main() -> None:
    options = parse()
    record = json.loads((options.run / "results.json").read_text(encoding="utf-8"))
    trained = keras.models.load_model(options.run / "model.keras", compile=False)
    info = DATASETS[options.name]
    size = info.unit * info.image_shape[0]
    known = Preprocess(info.class_names, size, info.extension)
    model = architecture(options.name)
    model.set_weights(trained.get_weights())
    model = with_preprocess(model, known)
    accuracy = tested_already(record, options) or tested(model, options)
    shifted = tested_off_center(model, options)
    _, labels = source_of(options).arrays(
        options.name, "test", canvas=(1, 1), limit=options.limit
    )
    card = Card(
        data=DATA[options.name],
        license="apache-2.0",
        command=f"{options.command or record['command']} (seed {record['seed']})",
        accuracy=accuracy,
        test_images=len(labels),
        object_sizes=(min(SIZE_FACTORS) * size, max(SIZE_FACTORS) * size),
        shift_accuracy=shifted,
        shift_images=min(options.shift_images, len(labels)),
        limits=LIMITS[options.name],
        date=record["date"],
        environment=record["environment"],
        images=images_in_words(model),
    )
    save_to_preset(model, options.out / options.name, card)
    print(card.markdown(options.name))
    print(f"{options.name}: network and card are in {options.out}")


def images_in_words(model: keras.Model) -> str:
    height, width, channels = model.input_shape[1:]
    what = "gray" if channels == 1 else "RGB"
    return (
        f"{what} images of {height}×{width} pixels, the object in the center, with "
        "values of 0 to 1 or 0 to 255; of other sizes by `input_shape`"
    )


def tested_already(record: dict, options: argparse.Namespace) -> dict[str, float]:
    """The run's accuracies, if they are those of the whole test set; else nothing."""
    limited = record["experiment"]["test_limit"] or options.limit or options.canvas
    accuracies = () if limited else record["accuracies"][record["name"]]
    return by_factor(zip(record["factors"], accuracies, strict=not limited))


def by_factor(pairs: Iterable[tuple[float, float]]) -> dict[str, float]:
    return {f"{factor:.4g}": round(float(share), 5) for factor, share in pairs}


def tested(model: keras.Model, options: argparse.Namespace) -> dict[str, float]:
    """Accuracy at each size factor, on the data set's own canvas for tests."""
    side = options.canvas or DATASETS[options.name].test_canvas
    model = with_input_shape(model, (side, side, model.input_shape[-1]))
    arguments = {"canvas": (side, side), "limit": options.limit, "batch_size": 50}
    source = source_of(options)
    tests = test_sets(options.name, SIZE_FACTORS, source, **arguments)
    result, _ = evaluate(model, tests)
    return by_factor(zip(result.factors, result.accuracies, strict=True))


def tested_off_center(
    model: keras.Model, options: argparse.Namespace
) -> dict[str, float]:
    """Accuracy at size factor 1, of images moved along both axes."""
    side = options.canvas or DATASETS[options.name].test_canvas
    model = with_input_shape(model, (side, side, model.input_shape[-1]))
    wide = side + 2 * max(SHIFTS)
    images, labels = source_of(options).arrays(
        options.name,
        "test",
        canvas=(wide, wide),
        limit=min(options.shift_images, options.limit or options.shift_images),
    )
    found = {}
    for shift in SHIFTS:
        first = max(SHIFTS) - shift
        cut = images[:, first : first + side, first : first + side]
        scores = model.predict(cut, batch_size=50, verbose=0)
        found[f"{shift}"] = round(float(np.mean(scores.argmax(axis=-1) == labels)), 4)
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("name", choices=DATA, metavar="NAME")
    parser.add_argument("--out", type=Path, default=FOLDER)
    add_source(parser.add_argument)
    parser.add_argument("--canvas", type=int, help="pixels; by default the data set's")
    parser.add_argument("--command", help="as the card tells it; by default the run's")
    parser.add_argument("--limit", type=int, help="so many test images of each size")
    parser.add_argument("--shift-images", type=positive(int), default=500)
    return parser.parse_args()


if __name__ == "__main__":
    main()
