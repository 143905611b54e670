"""What windows do to a trained network: its scores and answers against whole maps.

    python benchmarks/studies/windows.py runs/digits_max-small
    python benchmarks/studies/windows.py runs/cifar10_max-small --images 300

Takes the folder of a run of `examples/paper/reproduce.py`, or the name of a network
that comes with the package, and evaluates it with whole maps and with windows, at size
factors 1/2, 1 and 2: the root mean square change of the scores of all scale channels,
relative to that of the scores; the share of images that keep their class; the accuracy.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from networks import network_and_images, percent, scores

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.visualization import markdown_table

EXTENTS = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
FACTORS = (0.5, 1.0, 2.0)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", metavar="RUN", help="or the name of a trained one")
    parser.add_argument("--images", type=positive(int), default=600)
    extents = {"nargs": "+", "type": positive(float), "default": EXTENTS}
    parser.add_argument("--extents", **extents, help="q, the widths of the windows")
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    options = parser.parse_args()
    model, images_at = network_and_images(options)
    rows = [["q", "size", "change", "same class", "accuracy", "whole"]]
    for factor in FACTORS:
        images, labels = images_at(factor, larger=False)
        whole = scores(model, images, extent=None)
        before = whole.max(1).argmax(-1)
        for extent in options.extents:
            other = scores(model, images, extent=extent)
            after = other.max(1).argmax(-1)
            change = np.sqrt(np.mean((other - whole) ** 2) / np.mean(whole**2))
            same = (
                np.mean(one == two)
                for one, two in ((after, before), (after, labels), (before, labels))
            )
            rows.append([f"{extent:g}", f"{factor:g}", *percent(change, *same)])
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
