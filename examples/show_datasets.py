"""Draws a rescaled data set: all classes at two size factors, one at all factors.

    python examples/show_datasets.py --dataset digits
    python examples/show_datasets.py --dataset cifar10 --download --out pictures

writes <dataset>.png to the folder `--out`.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from keras_gdrn.commands import errors_in_one_line, save_figure
from keras_gdrn.data import DATASETS, SIZE_FACTORS, rescaled_arrays
from keras_gdrn.visualization import plot_image_grid, size_label

# Images; enough to find each class of any data set.
SEARCHED = 200


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=list(DATASETS), required=True)
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--download", action="store_true", help="if needed")
    parser.add_argument("--out", type=Path, default=Path("runs/datasets"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{options.dataset}.png"
    where = {"data_dir": options.data_dir, "download": options.download}
    save_figure(collage(options.dataset, **where), path)
    print(f"Wrote {path}")


def collage(dataset: str, **where):
    """Training images, test images twice as large, and one test image at all sizes."""
    names = DATASETS[dataset].class_names
    rows, first = [], {}
    for split, factor in (("train", 1.0), ("test", 2.0)):
        images, labels = rescaled_arrays(
            dataset, split, factor, limit=SEARCHED, **where
        )
        first = {name: int(np.argmax(labels == k)) for k, name in enumerate(names)}
        rows.append([(name, images[index]) for name, index in first.items()])
    index = first.get("cat", 0)  # a cat, as in the paper's figure
    at_sizes = []
    for factor in SIZE_FACTORS:
        images, _ = rescaled_arrays(dataset, "test", factor, limit=index + 1, **where)
        at_sizes.append((size_label(factor), images[index]))
    return plot_image_grid([*rows, at_sizes])


if __name__ == "__main__":
    main()
