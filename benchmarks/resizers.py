"""How far the stock resizers are from `imresize`. One command, a table.

    python benchmarks/resizers.py --data-dir ~/tensorflow_datasets

In levels of 0 to 255, unrounded, for bicubic antialiased resizing of CIFAR-10's test
images to the same size, `ceil(factor * N)`. The border are the pixels for which
`imresize` uses samples of the mirror extension; the stock resizers drop these. Inside,
what differs is the scale: theirs is the quotient of the sizes, not the factor.
"""

import argparse
import importlib.util
import os
from math import ceil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from tables import machine, print_header, print_row

from keras_gdrn.data import DATASETS, SIZE_FACTORS, imresize
from keras_gdrn.data._load import load


def by_tensorflow(images: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return tf.image.resize(images, size, "bicubic", antialias=True).numpy()


def by_keras(images: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    resized = keras.ops.image.resize(
        images,
        size,
        interpolation="bicubic",
        antialias=True,
        data_format="channels_last",
    )
    return keras.ops.convert_to_numpy(resized)


def by_jax(images: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    import jax

    shape = (len(images), *size, images.shape[-1])
    return np.asarray(jax.image.resize(images, shape, "bicubic", antialias=True))


def by_pillow(images: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """One channel at a time, as Pillow keeps floats in images of one channel only."""
    from PIL import Image

    resized = np.empty((len(images), *size, images.shape[-1]), "float32")
    for n, channel in np.ndindex(len(images), images.shape[-1]):
        plane = Image.fromarray(images[n, :, :, channel])
        plane = plane.resize(size[::-1], Image.Resampling.BICUBIC)
        resized[n, :, :, channel] = plane
    return resized


# By the module that must be installed.
RESIZERS = {
    "tensorflow": ("`tf.image.resize`", by_tensorflow),
    "keras": ("`keras.ops.image.resize` on TensorFlow", by_keras),
    "jax": ("`jax.image.resize`", by_jax),
    "PIL": ("Pillow", by_pillow),
}
ROWS = (
    *("largest, at the border", "largest, inside"),
    *("mean, at the border", "mean, inside", "share of the border in the sum"),
)


def border(size: tuple[int, int], factor: float) -> np.ndarray:
    """Which pixels `(height, width)` take samples from outside the image."""
    width = ceil(2 * max(factor, 1.0))  # the cubic reaches 2 pixels of the coarser grid
    inside = np.zeros(size, bool)
    inside[width:-width, width:-width] = True
    return ~inside


def differences(resize, images: np.ndarray, factor: float) -> list[str]:
    """A cell for each of `ROWS`."""
    expected = imresize(images, factor)
    size = expected.shape[1:3]
    difference = np.abs(resize(images, size) - expected)
    edge = border(size, factor)
    outer, inner = difference[:, edge], difference[:, ~edge]
    # At factor 1 there is none.
    share = outer.sum() / max(difference.sum(), 1e-9)
    return [
        *(f"{outer.max():.2f}", f"{inner.max():.2f}"),
        *(f"{outer.mean():.3f}", f"{inner.mean():.3f}", f"{100 * share:.0f} %"),
    ]


def test_images(arguments) -> np.ndarray:
    info = DATASETS[arguments.dataset]
    images, _ = load(info, "test", arguments.limit, arguments.data_dir)
    return images.astype("float32") * (255 / info.white)


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--dataset", default="cifar10", choices=list(DATASETS))
    parser.add_argument("--limit", type=int, default=1000, help="test images")
    return parser.parse_args()


def main() -> None:
    arguments = parsed_arguments()
    images = test_images(arguments)
    print(
        f"{machine()}; {len(images)} test images of {arguments.dataset}, {images.shape[1]}×{images.shape[2]}"
    )
    print_header("resizer", "difference", *(f"{f:.3g}" for f in SIZE_FACTORS))
    for module, (name, resize) in RESIZERS.items():
        if importlib.util.find_spec(module) is None:
            print(f"{name} is left out: {module} is not installed.")
            continue
        columns = [differences(resize, images, factor) for factor in SIZE_FACTORS]
        for row, *cells in zip(ROWS, *columns, strict=True):
            print_row(name, row, *cells)


if __name__ == "__main__":
    main()
