"""Draws a rescaled data set: all classes at two size factors, one at all factors.

    python examples/paper/show_datasets.py --dataset digits
    python examples/paper/show_datasets.py --dataset cifar10 --download --out pictures
    python examples/paper/show_datasets.py --dataset stl10 --h5 FOLDER
    python examples/paper/show_datasets.py --kernels

writes <dataset>.png to the folder `--out`, the last one kernels.png: the derivatives of
the Gaussian up to order 3 at two scales, of which all filters are made (Sec. 3.1).
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import numpy as np
from images import Source

from keras_gdrn.commands import errors_in_one_line, save_figure
from keras_gdrn.data import DATASETS, SIZE_FACTORS
from keras_gdrn.visualization import plot_basis_kernels, plot_image_grid, size_label

# Images; enough to find each class of any data set.
SEARCHED = 200


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--dataset", choices=list(DATASETS))
    what.add_argument("--kernels", action="store_true")
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--download", action="store_true", help="if needed")
    add("--h5", type=Path, metavar="FOLDER", help="read HDF5 files")
    add("--out", type=Path, default=Path("runs/datasets"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.kernels:
        name, figure = "kernels", plot_basis_kernels((1.0, 4.0), order=3)
    else:
        source = Source(options.data_dir, options.download, options.h5)
        name, figure = options.dataset, collage(options.dataset, source)
    path = options.out / f"{name}.png"
    save_figure(figure, path)
    print(f"Wrote {path}")


def collage(dataset: str, source: Source):
    """Training images, test images twice as large, and one test image at all sizes."""
    names = DATASETS[dataset].class_names
    rows, first = [], {}
    for split, factor in (("train", 1.0), ("test", 2.0)):
        images, labels = source.arrays(dataset, split, factor, SEARCHED)
        first = {name: int(np.argmax(labels == k)) for k, name in enumerate(names)}
        rows.append([(name, images[index]) for name, index in first.items()])
    index = first.get("cat", 0)  # a cat, as in the paper's figure
    at_sizes = []
    for factor in SIZE_FACTORS:
        images, _ = source.arrays(dataset, "test", factor, index + 1)
        at_sizes.append((size_label(factor), images[index]))
    return plot_image_grid([*rows, at_sizes])


if __name__ == "__main__":
    main()
