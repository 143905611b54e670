"""Trains a network on a folder of images, and tests it at other sizes.

    python examples/own_data.py photos
    python examples/own_data.py photos --start-from cifar10

`photos` has a subfolder of JPEG, PNG, BMP or GIF files for each class. About a fifth of
the images is held out for the test: by what they show, so that the same image is never
on both sides, and stays where it is when others are added. Each is cropped to a square,
which has `--side` pixels in training (size factor 1) and half to twice as many in the
test. One scale channel is trained first, then the same at six initial scales.
`--start-from` takes over a trained network, all but its last layer.

To the folder `--out` go model.keras, which predict.py takes, the table and the
pictures. Interrupted, the same command goes on.
"""

import argparse
import hashlib
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from PIL import Image, ImageOps

from keras_gdrn.commands import errors_in_one_line, positive, replacing
from keras_gdrn.data import SIZE_FACTORS, imresize, read_image
from keras_gdrn.evaluation import scale_selection_histogram
from keras_gdrn.models import (
    SIX_SCALES,
    Preprocess,
    from_preset,
    gauss_der_resnet,
    with_classes,
    with_input_shape,
    with_preprocess,
    with_sigma0,
)
from keras_gdrn.training import Recipe, Stage, train_in_stages
from keras_gdrn.visualization import (
    markdown_table,
    plot_scale_generalization,
    plot_scale_selection_histogram,
    size_label,
)

SUFFIXES = (".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png")


@errors_in_one_line()
def main() -> None:
    options = parse()
    side = options.side
    keras.utils.set_random_seed(options.seed)
    before = from_preset(options.start_from) if options.start_from else None
    channels = before.input_shape[-1] if before else 1 if options.gray else 3
    classes, images, labels, held_out = read(options.folder, 2 * side, channels)
    shape = (side, side, channels)
    if before:
        model = with_input_shape(with_classes(before, classes), shape)
        model = with_sigma0(model, SIX_SCALES)
    else:
        form = (shape, len(classes), options.widths, options.ratio, SIX_SCALES)
        # "max": objects need not be in the middle.
        model = gauss_der_resnet(*form, scale_dropout=0.2, spatial_selection="max")
    model = with_preprocess(model, Preprocess(classes, side))

    first = Recipe(options.epochs, batch_size=32)
    second = Recipe(max(1, options.epochs // 4), batch_size=32, learning_rate=0.005)
    stages = [Stage("one_channel", first, (1.0,))]
    stages += [Stage("six_channels", second, SIX_SCALES)]
    train = resized(images[~held_out], 1.0), labels[~held_out]
    model = train_in_stages(model, stages, train, out=options.out, seed=options.seed)
    with replacing(options.out / "model.keras") as partial:
        model.save(partial)

    print(f"Test on the {held_out.sum()} images that were held out")
    images, labels = images[held_out], labels[held_out]
    tests = {factor: (resized(images, factor), labels) for factor in SIZE_FACTORS}
    of_any_size = with_input_shape(model, (None, None, channels))
    found = scale_selection_histogram(of_any_size, tests, batch_size=8)
    accuracies = [f"{accuracy:.3f}" for accuracy in found.accuracies]
    rows = [["size", *map(size_label, SIZE_FACTORS)], ["accuracy", *accuracies]]
    print(f"\n{markdown_table(rows)}\n\nNetwork and pictures are in {options.out}")
    picture = plot_scale_generalization({model.name: found})
    picture.savefig(options.out / "scale_generalization.png")
    plot_scale_selection_histogram(found).savefig(options.out / "scale_selection.png")


def read(folder: Path, side: int, channels: int) -> tuple:
    """Classes, images `(N, side, side, channels)` uint8, labels, which are held out."""
    names = [path.name for path in folder.iterdir() if path.is_dir()]
    classes = sorted(name for name in names if not name.startswith("."))
    "".join(classes).encode()  # an error at once for names that no file can hold
    found = []
    for label, name in enumerate(classes):
        for file in sorted((folder / name).rglob("*")):
            hidden = any(part[0] == "." for part in file.relative_to(folder).parts)
            if hidden or file.suffix.lower() not in SUFFIXES:
                continue
            try:
                pixels = read_image(file, channels)
            except ValueError as error:  # damaged, or too large to be honest
                print(f"left out: {error}")
                continue
            # BOX takes the mean of what becomes a pixel: large photos do not alias.
            image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
            image = ImageOps.fit(image, (side, side), Image.Resampling.BOX)
            held_out = hashlib.sha256(pixels.tobytes()).digest()[0] % 5 == 0
            small = np.asarray(image).reshape(side, side, channels)
            found.append((small, label, held_out))
    trained = {label for _, label, held_out in found if not held_out}
    missing = [name for label, name in enumerate(classes) if label not in trained]
    if len(classes) < 2 or missing or not any(held_out for *_, held_out in found):
        raise ValueError(
            f"{folder} must have a subfolder for each of at least two classes, with "
            "images of each to train on, and some to hold out. Received: classes "
            f"{classes} with {len(found)} images, none to train on for {missing}"
        )
    return classes, *map(np.array, zip(*found, strict=True))


def resized(images: np.ndarray, factor: float) -> np.ndarray:
    """Images in [0, 1] at a size factor; they were read at that of 2."""
    return np.clip(imresize(images.astype("float32"), factor / 2) / 255, 0, 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, count = parser.add_argument, positive(int)
    add("folder", type=Path, help="has a subfolder of images for each class")
    add("--side", type=count, default=48, help="pixels of an image at size factor 1")
    add("--gray", action="store_true", help="one channel instead of three")
    add("--widths", type=count, nargs="+", default=[16, 16, 24, 24, 32])
    add("--ratio", type=positive(float), default=1.25, help="of successive scales")
    add("--start-from", help="a trained network, as from_preset takes it")
    add("--epochs", type=count, default=20, help="of one channel; of six a quarter")
    add("--seed", type=int, default=0)
    add("--out", type=Path, default=Path("runs/own_data"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
