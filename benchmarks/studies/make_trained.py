"""Makes a trained network that comes with the package, and its card, from a run.

    python benchmarks/studies/make_trained.py runs/mnist-small mnist
    python benchmarks/studies/make_trained.py runs/digits-small digits --out trained

The run is a folder of `examples/paper/reproduce.py`, and NAME the data set. Accuracies
are those of the run; only that on images shifted off the center is measured here.
"""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
from common import save_preset
from trained import FOLDER, shifted

from keras_gdrn import models
from keras_gdrn.commands import errors_in_one_line
from keras_gdrn.data import DATASETS

SHIFT_IMAGES = 500

DATA = {
    "digits": "scikit-learn's handwritten digits of 8×8 pixels, enlarged to 20×20; the "
    "first 1000 to train on, the last 797 to test on",
    "mnist": "MNIST: 60 000 images to train on, 10 000 to test on",
    "fashion_mnist": "Fashion-MNIST: 60 000 images to train on, 10 000 to test on",
    "cifar10": "CIFAR-10, a copy whose images had been compressed by JPEG: 50 000 to "
    "train on, 10 000 to test on",
}
LIMITS = {
    **dict.fromkeys(
        ("digits", "mnist"),
        "Digits that are more than a few pixels off the center of the image, several "
        "in one image, dark ones on a bright ground, and sizes beyond those above.",
    ),
    "fashion_mnist": "Photographs; clothes that are more than a few pixels off the "
    "center of the image, dark ones on a bright ground, and sizes beyond those above.",
    "cifar10": "Photographs of anything else than the ten classes, objects more than a "
    "few pixels off the center of the image or of other sizes than those above, and "
    "any use that depends on the answer.",
}


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("run", type=Path, metavar="RUN")
    add("name", choices=DATA, metavar="NAME")
    add("--out", type=Path, default=FOLDER)
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    options = parser.parse_args()
    name, info = options.name, DATASETS[options.name]
    record = json.loads((options.run / "results.json").read_text(encoding="utf-8"))
    model = keras.models.load_model(options.run / "model.keras", compile=False)
    size = info.unit * info.image_shape[0]
    known = models.Preprocess(info.class_names, size, info.extension)
    model = models.with_preprocess(model, known)
    height, width, channels = model.input_shape[1:]
    side = info.test_canvas
    tested = models.with_input_shape(model, (side, side, channels))

    factors, accuracies = record["factors"], record["accuracies"][record["name"]]
    test, data = record["experiment"], DATA[name]
    images = test["test_limit"] or info.size("test")
    seen = test["test_canvas"] or side
    if seen > side:  # than the data set's images
        data += f", extended to {seen}×{seen} pixels"
    pairs = zip(factors, accuracies, strict=True)
    moved = min(SHIFT_IMAGES, images)
    card = models.Card(
        data=data,
        license="apache-2.0",
        command=f"{record['command']} (seed {record['seed']})",
        accuracy={f"{factor:.4g}": round(float(share), 5) for factor, share in pairs},
        test_images=images,
        object_sizes=(min(factors) * size, max(factors) * size),
        shift_accuracy=shifted(tested, name, moved, options.data_dir),
        shift_images=moved,
        limits=LIMITS[name],
        date=record["date"],
        test_date=record["date"],
        environment=record["environment"],
        images=f"{'gray' if channels == 1 else 'RGB'} images of {height}×{width} "
        "pixels, the object in the center, with values of 0 to 1 or 0 to 255; of other "
        "sizes by `input_shape`",
    )
    save_preset(model, options.out / name, card)
    print(card.markdown(name))
    print(f"{name}: network and card are in {options.out}")


if __name__ == "__main__":
    main()
