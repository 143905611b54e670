"""How far the stock resizers are from `imresize`. One command, a table.

    python benchmarks/studies/resizers.py --data-dir ~/tensorflow_datasets

The largest difference in levels of 0 to 255, unrounded, for bicubic antialiased
resizing of CIFAR-10's test images to the same size, `ceil(factor * N)`; also inside of
the border, of the pixels for which `imresize` uses samples of the mirror extension,
which stock resizers drop. There it is the scale that differs: theirs is the quotient of
the sizes, not the factor.
"""

import argparse
import os
from math import ceil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from PIL import Image

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, SIZE_FACTORS, imresize, original_arrays
from keras_gdrn.visualization import markdown_table


def by_tensorflow(images: np.ndarray, size: tuple[int, int]):
    return tf.image.resize(images, size, "bicubic", antialias=True)


def by_keras(images: np.ndarray, size: tuple[int, int]):
    return keras.ops.image.resize(images, size, "bicubic", antialias=True)


def by_jax(images: np.ndarray, size: tuple[int, int]):
    import jax

    shape = (len(images), *size, images.shape[-1])
    return jax.image.resize(images, shape, "bicubic", antialias=True)


def by_pillow(images: np.ndarray, size: tuple[int, int]):
    """One channel at a time, as Pillow keeps floats in images of one channel only."""
    resized = np.empty((len(images), *size, images.shape[-1]), "float32")
    for n, channel in np.ndindex(len(images), images.shape[-1]):
        plane = Image.fromarray(images[n, :, :, channel])
        bicubic = plane.resize(size[::-1], Image.Resampling.BICUBIC)
        resized[n, :, :, channel] = bicubic
    return resized


RESIZERS = {
    "`tf.image.resize`": by_tensorflow,
    "`keras.ops.image.resize` on TensorFlow": by_keras,
    "`jax.image.resize`": by_jax,
    "Pillow": by_pillow,
}


def border_of(images: np.ndarray, factor: float) -> np.ndarray:
    """Which pixels of the resized images take samples from outside the image."""
    reach, edges = 2 / min(factor, 1.0), []
    for size in images.shape[1:3]:
        position = (np.arange(ceil(factor * size)) + 0.5) / factor - 0.5
        edges.append((position - reach < -1) | (position + reach > size))
    return edges[0][:, None] | edges[1]


@errors_in_one_line(ImportError)
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--dataset", default="cifar10", choices=list(DATASETS))
    parser.add_argument("--limit", type=positive(int), default=1000, help="test images")
    options = parser.parse_args()
    source = {"limit": options.limit, "data_dir": options.data_dir}
    images, _ = original_arrays(options.dataset, "test", **source)
    images = images.astype("float32") * (255 / DATASETS[options.dataset].white)
    size = "×".join(map(str, images.shape[1:3]))
    print(f"{len(images)} test images of {options.dataset}, {size}\n")
    rows = [["resizer", "", *(f"{f:.3g}" for f in SIZE_FACTORS)]]
    for name, resize in RESIZERS.items():
        everywhere, inside = [], []
        for factor in SIZE_FACTORS:
            expected, border = imresize(images, factor), border_of(images, factor)
            found = np.asarray(resize(images, expected.shape[1:3]))
            difference = np.abs(found - expected)
            everywhere.append(f"{difference.max():.2f}")
            inside.append(f"{difference[:, ~border].max(initial=0):.2f}")
        rows += [[name, "everywhere", *everywhere], [name, "inside", *inside]]
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
