"""How far the stock resizers are from `imresize`. One command, a table.

    python benchmarks/studies/resizers.py --data-dir ~/tensorflow_datasets

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

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, SIZE_FACTORS, imresize, original_arrays
from keras_gdrn.visualization import markdown_table


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
# Of a sum of differences, so that a sum of none has no share.
SMALLEST = 1e-9
MEASURES = ("largest", "mean", "largest inside", "share of the border")


def border(size: int, factor: float) -> np.ndarray:
    """Which of `ceil(factor * size)` pixels take samples from outside the image."""
    position = (np.arange(ceil(factor * size)) + 0.5) / factor - 0.5
    reach = 2 / min(factor, 1.0)
    return (position - reach < -1) | (position + reach > size)


def border_of(images: np.ndarray, factor: float) -> np.ndarray:
    height, width = images.shape[1:3]
    return border(height, factor)[:, None] | border(width, factor)


def differences(resize, images: np.ndarray, factor: float) -> list[str]:
    """A cell for each of `MEASURES`."""
    expected = imresize(images, factor)
    difference = np.abs(resize(images, expected.shape[1:3]) - expected)
    edge = border_of(images, factor)
    share = difference[:, edge].sum() / max(difference.sum(), SMALLEST)
    return [
        f"{difference.max():.2f}",
        f"{difference.mean():.3f}",
        f"{difference[:, ~edge].max(initial=0):.2f}",
        f"{share:.0%}",
    ]


def test_images(arguments) -> np.ndarray:
    options = {"limit": arguments.limit, "data_dir": arguments.data_dir}
    images, _ = original_arrays(arguments.dataset, "test", **options)
    return images.astype("float32") * (255 / DATASETS[arguments.dataset].white)


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--dataset", default="cifar10", choices=list(DATASETS))
    parser.add_argument("--limit", type=positive(int), default=1000, help="test images")
    return parser.parse_args()


@errors_in_one_line()
def main() -> None:
    arguments = parsed_arguments()
    images = test_images(arguments)
    size = "×".join(map(str, images.shape[1:3]))
    print(f"{len(images)} test images of {arguments.dataset}, {size}")
    found = {}
    for module, (name, resize) in RESIZERS.items():
        if importlib.util.find_spec(module) is None:
            print(f"{name} is left out: {module} is not installed.")
            continue
        columns = [differences(resize, images, factor) for factor in SIZE_FACTORS]
        found[name] = dict(zip(MEASURES, zip(*columns, strict=True), strict=True))
    rows = [["resizer", "difference", *(f"{f:.3g}" for f in SIZE_FACTORS)]]
    for measure in MEASURES:
        for name, cells in found.items():
            rows.append([name, measure, *cells[measure]])
    pixels = [f"{border_of(images, factor).mean():.0%}" for factor in SIZE_FACTORS]
    rows.append(["all", "pixels of the border", *pixels])
    print(f"\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
