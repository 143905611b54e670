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
import json
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

import keras_gdrn  # noqa: F401  the layers that a file may hold
from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, rescaled_arrays
from keras_gdrn.kernels import _axis, _discrete
from keras_gdrn.models import with_input_shape, with_sigma0
from keras_gdrn.visualization import markdown_table

EXTENTS = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
FACTORS = (0.5, 1.0, 2.0)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--images", type=positive(int), default=600)
    parser.add_argument("--truncated", type=positive(float), nargs="+", metavar="SHARE")
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    experiment = json.loads((options.run / "results.json").read_text())["experiment"]
    model = keras.saving.load_model(options.run / "model.keras")
    names = ["q", "whole maps"]
    if options.truncated:
        names = ["share outside", "whole kernels"]
    header = [names[0], "size", "change of scores", "same class", "accuracy", names[1]]
    rows = [header]
    for factor in FACTORS:
        images, labels = test_images(experiment, factor, options)
        whole = scores(model, images, "auto" if options.truncated else None)
        for value in options.truncated or EXTENTS:
            if options.truncated:
                with truncated_kernels(value):
                    other = scores(model, images, "auto")
            else:
                other = scores(model, images, value)
            change = np.sqrt(np.mean((other - whole) ** 2) / np.mean(whole**2))
            answers, before = other.max(1).argmax(-1), whole.max(1).argmax(-1)
            shares = [answers == before, answers == labels, before == labels]
            percents = [f"{100 * np.mean(share):.1f} %" for share in shares]
            rows.append(
                [f"{value:g}", f"{factor:g}", f"{100 * change:.2f} %", *percents]
            )
    print(markdown_table(rows))


def test_images(experiment: dict, factor: float, options) -> tuple:
    dataset = experiment["dataset"]
    side = experiment["test_canvas"] or DATASETS[dataset].test_canvas
    images, labels = rescaled_arrays(
        dataset,
        "test",
        factor,
        canvas=(side, side),
        limit=options.images,
        data_dir=options.data_dir,
    )
    return images, np.ravel(labels)


def scores(model: keras.Model, images, extent: float | str | None) -> np.ndarray:
    """`(image, scale, class)`, before the scales are pooled."""
    model = with_input_shape(model, images.shape[1:])
    channels = model.get_layer("scale_channels")
    model = with_sigma0(model, channels.sigma0, receptive_field=extent)
    channels = model.get_layer("scale_channels")
    scorer = keras.Model(model.input, channels.output)
    return scorer.predict(images, batch_size=50, verbose=0)


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
