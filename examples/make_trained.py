"""Makes the trained weights that come with the package, and their card, from a run.

    python examples/make_trained.py runs/mnist-small mnist --data-dir data
    python examples/make_trained.py runs/digits_max-small digits --out /tmp/trained

The run is a folder of `reproduce.py`; NAME is the preset, which must have the run's
architecture. The network is tested on the whole test set at each of the nine sizes,
unless the run has done so (`--budget medium`).
"""

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from common import evaluate, parameters, test_sets  # first: it keeps TensorFlow quiet

# isort: split
import keras
import numpy as np
from sources import add_source, source_of

import keras_gdrn.models
from keras_gdrn.commands import errors_in_one_line
from keras_gdrn.data import DATASETS, SIZE_FACTORS
from keras_gdrn.models import Trained, from_preset, with_input_shape

FOLDER = Path(keras_gdrn.models.__file__).parent / "trained"

CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
CLASS_NAMES = {
    "digits": tuple(map(str, range(10))),
    "mnist": tuple(map(str, range(10))),
    "cifar10": tuple(CIFAR10.split()),
}
DATA = {
    "digits": "scikit-learn's handwritten digits of 8×8 pixels, enlarged to 20×20; the "
    "first 1000 to train on, the last 797 to test on",
    "mnist": "MNIST: 60 000 images to train on, 10 000 to test on",
    "cifar10": "CIFAR-10, a copy whose images had been compressed by JPEG: 50 000 to "
    "train on, 10 000 to test on",
}
_OTHER_DIGITS = (
    "Digits that are not in the center of the image, several in one image, "
    "dark ones on a bright ground, and sizes beyond a half and twice the trained."
)
LIMITS = {
    "digits": _OTHER_DIGITS,
    "mnist": _OTHER_DIGITS,
    "cifar10": "Photographs of anything else than the ten classes, objects far from "
    "the center of the image, and any use that depends on the answer.",
}


@errors_in_one_line()
def main() -> None:
    options = parse()
    record = json.loads((options.run / "results.json").read_text(encoding="utf-8"))
    trained = keras.models.load_model(options.run / "model.keras", compile=False)
    model = from_preset(options.name)
    model.set_weights(trained.get_weights())
    weights = options.out / f"{options.name}.weights.h5"
    options.out.mkdir(parents=True, exist_ok=True)
    model.save_weights(weights)
    accuracy = tested_already(record, options) or tested(model, options)
    print({name: round(share, 4) for name, share in accuracy.items()})
    card = described(options.name, record, model, accuracy, weights, options)
    text = json.dumps(dataclasses.asdict(card), indent=2, ensure_ascii=False)
    (options.out / f"{options.name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{options.name}: weights and card are in {options.out}")


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


def described(name, record, model, accuracy, weights: Path, options) -> Trained:
    height, width, channels = model.input_shape[1:]
    source = source_of(options)
    images, _ = source.arrays(name, "train", canvas=(height, width), limit=1000)
    _, labels = source.arrays(name, "test", canvas=(1, 1), limit=options.limit)
    what = "gray" if channels == 1 else "RGB"
    return Trained(
        preset=name,
        class_names=CLASS_NAMES[name],
        images=f"{what} images of any size, (batch, height, width, {channels}), the "
        f"object in the center; trained on {height}×{width} pixels",
        image_range=(0.0, 1.0),
        image_mean=round(float(np.mean(images)), 3),
        data=DATA[name],
        accuracy=accuracy,
        test_images=len(labels),
        parameters=parameters(model),
        command=f"{options.command or record['command']} (seed {record['seed']})",
        date=record["date"],
        environment=record["environment"],
        limits=LIMITS[name],
        sha256=hashlib.sha256(weights.read_bytes()).hexdigest(),
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("name", choices=CLASS_NAMES, metavar="NAME")
    parser.add_argument("--out", type=Path, default=FOLDER)
    add_source(parser.add_argument)
    parser.add_argument("--canvas", type=int, help="pixels; by default the data set's")
    parser.add_argument("--command", help="as the card tells it; by default the run's")
    parser.add_argument("--limit", type=int, help="so many test images of each size")
    return parser.parse_args()


if __name__ == "__main__":
    main()
