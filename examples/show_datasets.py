"""Draws a rescaled data set: its classes in training and at size factor 2, one at all.

    python examples/show_datasets.py --dataset digits
    python examples/show_datasets.py --dataset cifar10 --data-dir data --out pictures

writes <dataset>.png to the folder `--out`.
"""

import argparse
from pathlib import Path

from common import TFDS, sample_images  # before Keras: it keeps TensorFlow quiet

# isort: split
import numpy as np
from sources import Source, add_source, source_of

from keras_gdrn.commands import errors_in_one_line
from keras_gdrn.data import DATASETS, SIZE_FACTORS
from keras_gdrn.visualization import plot_image_grid, size_label

# Enough of any of the data sets to find each class among them.
SEARCHED = 200


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=list(DATASETS), required=True)
    add_source(parser.add_argument)
    parser.add_argument("--out", type=Path, default=Path("runs/datasets"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{options.dataset}.png"
    collage(options.dataset, source_of(options)).savefig(path)
    print(f"Wrote {path}")


def collage(name: str, source: Source = TFDS):
    """Training images, test images twice as large, and one test image at all sizes."""
    training, _ = classes(name, "train", 1.0, source)
    tests, indices = classes(name, "test", 2.0, source)
    index = indices.get("cat", 0)  # a cat, as in the paper's figure
    sizes = sample_images(name, SIZE_FACTORS, source, count=index + 1)
    return plot_image_grid(
        [
            list(training.items()),
            list(tests.items()),
            [(size_label(factor), images[index]) for factor, images in sizes.items()],
        ]
    )


def classes(
    name: str, split: str, factor: float, source: Source
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The first image of each class of a split, and which it is, by its name."""
    images, labels = source.arrays(name, split, factor, limit=SEARCHED)
    indices = {
        class_name: int(np.argmax(labels == label))
        for label, class_name in enumerate(DATASETS[name].class_names)
    }
    return {name: images[index] for name, index in indices.items()}, indices


if __name__ == "__main__":
    main()
