"""Trains a network on a folder of images, and tests it at other sizes.

    python examples/own_data.py photos
    python examples/own_data.py photos --start-from cifar10

`photos` has a subfolder of JPEG, PNG, BMP or GIF files for each class. A fifth of the
images is held out for the test. Each image is cropped to a square, which has `--side`
pixels in training (size factor 1) and half to twice as many in the test. One scale
channel is trained first, then the same at six initial scales. `--start-from` takes over
a trained network, all but its last layer.

To the folder `--out` go model.keras, which predict.py takes, the table and the
pictures. Killed? The same command goes on.
"""

import argparse
import hashlib
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import common  # before Keras: it keeps TensorFlow quiet

# isort: split
import keras
import numpy as np
import tensorflow as tf

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import SIZE_FACTORS, imresize, read_image
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
from keras_gdrn.training import (
    Recipe,
    Stage,
    claim_folder,
    lock_folder,
    train_in_stages,
)

SUFFIXES = (".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png")
PART = 5  # one image of so many is held out
MOST = 2048  # pixels of a side of the images that are tested


class Images(NamedTuple):
    """Images `(N, H, W, channel)` uint8, read at size factor 2, and labels."""

    pixels: np.ndarray
    labels: np.ndarray


@errors_in_one_line()
def main() -> None:
    run(parse())


def run(options: argparse.Namespace) -> None:
    start = time.perf_counter()
    before = from_preset(options.start_from) if options.start_from else None
    channels = before.input_shape[-1] if before else 1 if options.gray else 3
    side = options.side
    if max(options.factors) * side > MOST:
        raise ValueError(
            f"--factors times --side must be at most {MOST} pixels. "
            f"Received: {max(options.factors):g} times {side}"
        )
    train, test, classes = read_folder(options.folder, 2 * side, channels, options.seed)
    decided = {"classes": classes, "images": fingerprint(train, test)}
    keras.utils.set_random_seed(options.seed)
    model = network(options, before, classes, channels)
    with lock_folder(options.out):
        # Only now: what was mistyped leaves no folder behind.
        claim_folder(options.out, {**settings(options), **decided})
        model = trained(model, train, options)
        common.save_network(model, options.out / "model.keras")
        record = {
            "classes": classes,
            "images": {"training": len(train.labels), "test": len(test.labels)},
            "parameters": common.parameters(model),
            "seconds": {"training": time.perf_counter() - start},
        }
        write_test(model, test, record, options)


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """All that decides the result, for JSON."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(options).items()
        if name != "out"
    }


def network(
    options: argparse.Namespace,
    before: keras.Model | None,
    classes: list[str],
    channels: int,
) -> keras.Model:
    """For objects that need not be in the middle, or like the network before."""
    shape = (options.side, options.side, channels)
    if before is None:
        model = gauss_der_resnet(
            shape,
            len(classes),
            options.widths,
            options.ratio,
            SIX_SCALES,
            scale_dropout=0.2,
            spatial_selection="max",
        )
    else:
        model = with_input_shape(with_classes(before, classes), shape)
        model = with_sigma0(model, SIX_SCALES)
    return with_preprocess(model, Preprocess(classes, options.side))


def trained(
    model: keras.Model, train: Images, options: argparse.Namespace
) -> keras.Model:
    """The network, trained at one scale first and then at six."""
    first = Recipe(options.epochs, options.batch_size)
    second = Recipe(
        max(1, options.epochs // 4), options.batch_size, learning_rate=0.005
    )
    stages = [
        Stage("one_channel", first, (1.0,)),
        Stage("six_channels", second, SIX_SCALES),
    ]
    data = batches(train, 1.0, options.batch_size, options.seed)
    kept = {"out": options.out, "seed": options.seed, "verbose": common.VERBOSE}
    return train_in_stages(model, stages, data, **kept)


def write_test(
    model: keras.Model, test: Images, record: dict, options: argparse.Namespace
) -> None:
    """Tests the network at each size, and writes the table and the pictures."""
    print(f"Test on the {len(test.labels)} images that were held out")
    largest = math.ceil(max(options.factors) * options.side)
    size = common.test_batch(model, (largest, largest))
    tests = {factor: batches(test, factor, size) for factor in options.factors}
    of_any_size = with_input_shape(model, (None, None, test.pixels.shape[-1]))
    result, histogram = common.evaluate(of_any_size, tests)
    samples = {f: next(data.as_numpy_iterator())[0][:4] for f, data in tests.items()}
    common.write_results(options.out, {model.name: result}, histogram, samples, record)


def batches(
    images: Images, factor: float, batch_size: int, seed: int | None = None
) -> tf.data.Dataset:
    """Batches (images, labels) at a size factor, in [0, 1]; shuffled by a seed."""

    def resize(pixels: tf.Tensor, labels: tf.Tensor) -> tuple:
        return tf.clip_by_value(imresize(pixels, factor / 2) / 255, 0, 1), labels

    with tf.device("CPU"):  # a GPU would be given a copy of all images
        data = tf.data.Dataset.from_tensor_slices(tuple(images))
    if seed is not None:
        data = data.shuffle(len(images.labels), seed)
    return data.batch(batch_size).map(resize, tf.data.AUTOTUNE).prefetch(1)


def read_folder(
    folder: Path, side: int, channels: int, seed: int
) -> tuple[Images, Images, list[str]]:
    """Images for training, those that are held out, and the names of the classes."""
    inside = visible(folder)
    folders = [path for path in inside if is_folder(path)]
    leave_out(folder, [path for path in inside if not is_folder(path)])
    classes = [path.name for path in folders]
    "".join(classes).encode()  # an error at once for names that no file can hold
    if len(classes) < 2:
        raise ValueError(
            f"{folder} must have a subfolder of images for each of at least two "
            f"classes. Received: {classes}"
        )
    pixels, labels = [np.empty((0, side, side, channels), "uint8")], []
    for label, path in enumerate(folders):
        for file in image_files(path):
            try:
                image = read_image(file, channels)
            except ValueError as error:
                print(f"left out: {error}")
            else:
                pixels.append(squared(image, side)[None])
                labels.append(label)
    images = Images(np.concatenate(pixels), np.array(labels, "int32"))
    # Each image is in one of the two: the test has none that was trained on.
    order = np.random.default_rng(seed).permutation(len(labels))
    count = len(order) // PART
    test, train = (
        Images(images.pixels[part], images.labels[part])
        for part in (order[:count], order[count:])
    )
    missing = sorted(set(classes) - {classes[label] for label in train.labels})
    if missing or not count:
        raise ValueError(
            f"{folder} must have at least {PART} images that can be read, and some of "
            f"each class to train on. Received: {len(order)} images, and none to train "
            f"on for {missing}, after a fifth of all was held out"
        )
    return train, test, classes


def image_files(folder: Path) -> list[Path]:
    """Those anywhere below a folder, in order; it is told what else is there."""
    found, others = [], []
    for path in visible(folder):
        if is_folder(path):
            found += image_files(path)
        elif path.suffix.lower() in SUFFIXES and not path.is_dir():
            found.append(path)
        else:
            others.append(path)
    leave_out(folder, others)
    return found


def leave_out(folder: Path, others: list[Path]) -> None:
    if others:
        names = ", ".join(path.name for path in others[:5]) + ", …" * (len(others) > 5)
        print(f"left out: {len(others)} other files or links in {folder}: {names}")


def is_folder(path: Path) -> bool:
    """Whether it is a folder itself: one that is linked may be read already."""
    return path.is_dir() and not path.is_symlink()


def visible(folder: Path) -> list[Path]:
    """What is in a folder, in order, but for what is hidden."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def squared(image: np.ndarray, side: int) -> np.ndarray:
    """The central square of an image, resized to `side` pixels."""
    shorter = min(image.shape[:2])
    top, left = ((n - shorter) // 2 for n in image.shape[:2])
    square = image[top : top + shorter, left : left + shorter]
    # Of TensorFlow's methods, the one that does not alias in large photos.
    return np.rint(tf.image.resize(square, (side, side), "area")).astype("uint8")


def fingerprint(train: Images, test: Images) -> str:
    """What tells these images, and which of them are held out, from any others."""
    digest = hashlib.sha256()
    for images in (train, test):
        digest.update(images.labels.tobytes() + images.pixels.tobytes())
    counts = f"{len(train.labels)} and {len(test.labels)} held out"
    return f"{counts}, {digest.hexdigest()[:12]}"


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
    add("--batch-size", type=count, default=32)
    add("--factors", type=positive(float), nargs="+", default=SIZE_FACTORS)
    add("--seed", type=int, default=0)
    add("--out", type=Path, default=Path("runs/own_data"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
