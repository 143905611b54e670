"""Trains a network on a folder of images, and tests it at other sizes.

    python examples/own_data.py photos --start-from cifar10

`photos` has a subfolder of JPEG, PNG, BMP or GIF files for each class. About a fifth is
held out for the test, by a hash of the pixels. Each image becomes a square of `--side`
pixels in training, and of half to twice as many in the test. One scale channel is
trained first, then six; `--start-from` uses a trained network except its last layer.
`--out` gets model.keras, for predict.py, and pictures. After an interruption, the same
command resumes.
"""

import argparse
import hashlib
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from PIL import Image, ImageOps

from keras_gdrn import models, visualization
from keras_gdrn.commands import atomic_write, errors_in_one_line, positive, save_figure
from keras_gdrn.data import SIZE_FACTORS, imresize, read_image
from keras_gdrn.evaluation import scale_selection_histogram
from keras_gdrn.training import Recipe, Stage, train_in_stages

SUFFIXES = (".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png")


@errors_in_one_line()
def main() -> None:
    options = parse()
    side, out = options.side, options.out
    keras.utils.set_random_seed(options.seed)
    given = models.from_preset(options.start_from) if options.start_from else None
    channels = given.input_shape[-1] if given else 1 if options.gray else 3
    classes, images, labels, held_out = read(options.folder, 2 * side, channels)
    shape = (side, side, channels)
    if given:
        model = models.with_input_shape(models.with_classes(given, classes), shape)
    else:
        of = (shape, len(classes), options.widths, options.ratio, models.SIX_SCALES)
        # "max" finds objects at any position.
        model = models.gauss_der_resnet(*of, scale_dropout=0.2, spatial_selection="max")
    model = models.with_preprocess(model, models.Preprocess(classes, side))
    stages = [Stage("one_channel", Recipe(options.epochs, batch_size=32), (1.0,))]
    second = Recipe(max(1, options.epochs // 4), batch_size=32, learning_rate=0.005)
    stages += [Stage("six_channels", second, models.SIX_SCALES)]
    train = resized(images[~held_out], 1.0), labels[~held_out]
    model = train_in_stages(model, stages, train, out=out, seed=options.seed)
    with atomic_write(out / "model.keras") as partial:
        model.save(partial)
    print(f"Test on the {held_out.sum()} held-out images")
    tests = {f: (resized(images[held_out], f), labels[held_out]) for f in SIZE_FACTORS}
    model = models.with_input_shape(model, (None, None, channels))  # of any size
    found = scale_selection_histogram(model, tests, batch_size=8)
    sizes = ["size", *map(visualization.size_label, SIZE_FACTORS)]
    accuracies = ["accuracy", *(f"{accuracy:.3f}" for accuracy in found.accuracies)]
    print(f"\n{visualization.markdown_table([sizes, accuracies])}\n")
    print(f"Network and pictures are in {out}")
    curve = visualization.plot_scale_generalization({model.name: found})
    save_figure(curve, out / "scale_generalization.png")
    histogram = visualization.plot_scale_selection_histogram(found)
    save_figure(histogram, out / "scale_selection.png")


def read(folder: Path, side: int, channels: int) -> tuple:
    """Classes, images `(N, side, side, channels)` uint8, labels, held-out mask."""
    names = (path.name for path in folder.iterdir() if path.is_dir())
    classes = sorted(name for name in names if name[0] != ".")
    "".join(classes).encode()  # an error at once for names that are not UTF-8
    found = []
    for file in sorted(folder.glob("*/**/*")):
        parts = file.relative_to(folder).parts
        if file.suffix.lower() not in SUFFIXES or any(p[0] == "." for p in parts):
            continue
        try:
            pixels = read_image(file, channels)
        except ValueError as error:  # damaged, or of too many pixels
            print(f"left out: {error}")
            continue
        # BOX averages the area of each new pixel, so that large photos do not alias.
        image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
        image = ImageOps.fit(image, (side, side), Image.Resampling.BOX)
        held_out = hashlib.sha256(pixels.tobytes()).digest()[0] % 5 == 0
        small = np.asarray(image).reshape(side, side, channels)
        found.append((small, classes.index(parts[0]), held_out))
    sides = {(label, held_out) for _, label, held_out in found}
    missing = [name for n, name in enumerate(classes) if (n, False) not in sides]
    if len(classes) < 2 or missing or not any(held_out for _, held_out in sides):
        raise ValueError(
            f"{folder} must have images of at least two classes to train on, and some "
            f"to hold out. Received: classes {classes}, none to train on for {missing}"
        )
    return classes, *map(np.array, zip(*found, strict=True))


def resized(images: np.ndarray, factor: float) -> np.ndarray:
    """Images in [0, 1] at a size factor; they were read at size factor 2."""
    return np.clip(imresize(images.astype("float32"), factor / 2) / 255, 0, 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, count = parser.add_argument, positive(int)
    add("folder", type=Path, help="has a subfolder of images for each class")
    add("--side", type=count, default=48, help="pixels of an image at size factor 1")
    add("--gray", action="store_true", help="one channel instead of three")
    add("--widths", type=count, nargs="+", default=[16, 16, 24, 24, 32])
    add("--ratio", type=positive(float), default=1.25, help="of successive scales")
    add("--start-from", help="a trained network, as from_preset takes it")
    add("--epochs", type=count, default=20, help="of one channel; a quarter for six")
    add("--seed", type=int, default=0)
    add("--out", type=Path, default=Path("runs/own_data"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
