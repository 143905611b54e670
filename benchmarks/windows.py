"""What windows do to a trained network: its scores and answers against whole maps.

    python benchmarks/windows.py runs/digits_max-small
    python benchmarks/windows.py runs/cifar10_max-small --images 300

Takes the folder of a run of `examples/reproduce.py`, and evaluates its network with
whole maps and with windows, at size factors 1/2, 1 and 2: the root mean square change
of the scores of all scale channels, relative to that of the scores; the share of
images that keep their class; the accuracy.
"""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from tables import print_header, print_row

import keras_gdrn  # noqa: F401  the layers that a file may hold
from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, rescaled_arrays
from keras_gdrn.models import with_input_shape, with_sigma0

EXTENTS = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
FACTORS = (0.5, 1.0, 2.0)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--images", type=positive(int), default=600)
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    experiment = json.loads((options.run / "results.json").read_text())["experiment"]
    model = keras.saving.load_model(options.run / "model.keras")
    print_header(
        "q", "size", "change of scores", "same class", "accuracy", "whole maps"
    )
    for factor in FACTORS:
        images, labels = test_images(experiment, factor, options)
        whole = scores(model, images, None)
        for extent in EXTENTS:
            windows = scores(model, images, extent)
            change = np.sqrt(np.mean((windows - whole) ** 2) / np.mean(whole**2))
            answers, before = windows.max(1).argmax(-1), whole.max(1).argmax(-1)
            print_row(
                f"{extent:g}",
                f"{factor:g}",
                f"{100 * change:.2f} %",
                f"{100 * np.mean(answers == before):.1f} %",
                f"{100 * np.mean(answers == labels):.1f} %",
                f"{100 * np.mean(before == labels):.1f} %",
            )


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


def scores(model: keras.Model, images, extent: float | None) -> np.ndarray:
    """`(image, scale, class)`, before the scales are pooled."""
    model = with_input_shape(model, images.shape[1:])
    channels = model.get_layer("scale_channels")
    model = with_sigma0(model, channels.sigma0, receptive_field=extent)
    channels = model.get_layer("scale_channels")
    scorer = keras.Model(model.input, channels.output)
    return scorer.predict(images, batch_size=50, verbose=0)


if __name__ == "__main__":
    main()
