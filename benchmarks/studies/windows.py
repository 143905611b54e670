"""What windows do to a trained network: its scores and answers against whole maps.

    python benchmarks/studies/windows.py runs/digits_max-small
    python benchmarks/studies/windows.py runs/cifar10_max-small --images 300
    python benchmarks/studies/windows.py runs/cifar10_max-small --truncated 0.005 0.01

Takes the folder of a run of `examples/paper/reproduce.py`, and evaluates its network
with whole maps and with windows, at size factors 1/2, 1 and 2: the root mean square
change of the scores of all scale channels, relative to that of the scores; the share of
images that keep their class; the accuracy. The last line compares whole kernels with
kernels that are truncated, as in the paper, where a share of a Gaussian in two
dimensions is outside; on windows.
"""

import argparse
import contextlib
import os
from collections.abc import Iterator
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from networks import network_and_images, scores

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.kernels import _axis, _discrete
from keras_gdrn.visualization import markdown_table

EXTENTS = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
FACTORS = (0.5, 1.0, 2.0)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", metavar="RUN", help="or the name of a trained one")
    parser.add_argument("--images", type=positive(int), default=600)
    parser.add_argument("--truncated", type=positive(float), nargs="+", metavar="SHARE")
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    model, images_at = network_and_images(options)
    names = ("share outside", "whole kernels") if options.truncated else ("q", "whole")
    rows = [[names[0], "size", "change", "same class", "accuracy", names[1]]]
    for factor in FACTORS:
        images, labels = images_at(factor, larger=False)
        whole = scores(model, images, extent="auto" if options.truncated else None)
        for value in options.truncated or EXTENTS:
            if options.truncated:
                with truncated_kernels(value):
                    other = scores(model, images)
            else:
                other = scores(model, images, extent=value)
            change = np.sqrt(np.mean((other - whole) ** 2) / np.mean(whole**2))
            after, before = other.max(1).argmax(-1), whole.max(1).argmax(-1)
            shares = [after == before, after == labels, before == labels]
            percents = [f"{100 * np.mean(share):.1f} %" for share in shares]
            cells = [f"{value:g}", f"{factor:g}", f"{100 * change:.2f} %"]
            rows.append([*cells, *percents])
    print(markdown_table(rows))


@contextlib.contextmanager
def truncated_kernels(share: float) -> Iterator[None]:
    """Gaussians end where at most this share of them is outside, in two dimensions."""
    whole = _discrete.discrete_gaussian

    def truncated(sigma: float, radius: int) -> np.ndarray:
        distance = np.abs(np.arange(-radius, radius + 1))
        half = whole(sigma, _discrete.support_radius(sigma))
        half = half[len(half) // 2 :]
        inside = half[0] + 2 * np.append(0.0, np.cumsum(half[1:]))
        last = np.argmax(inside**2 >= 1 - share)
        return np.where(distance <= last, whole(sigma, radius), 0.0)

    forget_kernels()
    with mock.patch.object(_discrete, "discrete_gaussian", truncated):
        yield
    forget_kernels()


def forget_kernels() -> None:
    _axis.axis_factors.cache.clear()
    for function in vars(_discrete).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


if __name__ == "__main__":
    main()
