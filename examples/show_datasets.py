"""Draws a rescaled data set: its classes at size factors 1 and 2, and one image at all.

    python examples/show_datasets.py --dataset digits
    python examples/show_datasets.py --dataset cifar10 --data-dir data --out pictures

writes <dataset>.png to the folder `--out`.
"""

import argparse
from pathlib import Path

from common import sample_images  # before Keras: it keeps TensorFlow quiet

# isort: split
import numpy as np
from commands import errors_in_one_line

from keras_gdrn.data import DATASETS, SIZE_FACTORS, rescaled_arrays
from keras_gdrn.visualization import plot_image_grid, size_label

# Enough of any of the data sets to find each class among them.
SEARCHED = 200


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=list(DATASETS), required=True)
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--out", type=Path, default=Path("runs/datasets"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{options.dataset}.png"
    collage(options.dataset, options.data_dir).savefig(path)
    print(f"Wrote {path}")


def collage(name: str, data_dir: str | None = None):
    sizes = sample_images(name, SIZE_FACTORS, count=1, data_dir=data_dir)
    return plot_image_grid(
        [
            classes(name, 1.0, data_dir),
            classes(name, 2.0, data_dir),
            [(size_label(factor), images[0]) for factor, images in sizes.items()],
        ]
    )


def classes(name: str, factor: float, data_dir: str | None) -> list:
    """The first test image of each class at a size factor, under its name."""
    images, labels = rescaled_arrays(
        name, "test", factor, limit=SEARCHED, data_dir=data_dir
    )
    return [
        (class_name, images[np.argmax(labels == label)])
        for label, class_name in enumerate(DATASETS[name].class_names)
    ]


if __name__ == "__main__":
    main()
