"""Draws a trained network: its filters, and its activation maps at three scales.

    python examples/paper/look_inside.py digits
    python examples/paper/look_inside.py runs/stl10_average-full/model.keras \
        --dataset stl10 --download --classes bird car dog monkey ship
    python examples/paper/look_inside.py runs/stl10_single-full/model.keras \
        --dataset stl10 --h5 FOLDER --layers 2 10 11 17

writes two pictures to the folder `--out`. effective_filters.png has the effective
filters of each layer at σ_0 = 1, as in Sec. A.6, numbered as there: the stem is layer
1, the first block has layers 2 and 3. activation_maps.png has the activation maps of
the first correctly classified test image of each class, at three initial scales, as in
Sec. 8. There, objects are twice as large as in training, so that nothing around the
image is a mirror image of it.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from images import Source

from keras_gdrn.commands import errors_in_one_line, positive, save_figure
from keras_gdrn.data import DATASETS
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock, ScaleChannels
from keras_gdrn.models import from_preset, only_layer, with_input_shape
from keras_gdrn.visualization import (
    activation_maps,
    effective_filters,
    plot_activation_maps,
    plot_effective_filters,
)

SIGMA0 = (0.5, 1.0, 2.0)
SEARCHED = 100  # test images


def filters_of(network: keras.Model, numbers: list[int] | None) -> dict:
    """The effective filters of the layers with these numbers, by default of all."""
    layers = []
    for layer in network.layers:
        if isinstance(layer, GaussDerConv):
            layers.append((layer.name, layer))
        elif isinstance(layer, GaussDerResidualBlock):
            parts = {"conv1": layer.conv1, "conv2": layer.conv2}
            layers += [(f"{layer.name}.{name}", conv) for name, conv in parts.items()]
    known = dict(enumerate(layers, start=1))
    chosen = numbers or list(known)
    if not set(chosen) <= set(known):
        raise ValueError(
            f"`--layers` must be from 1 to {len(layers)}. Received: {chosen}"
        )
    return {
        f"{number}: {known[number][0]}": effective_filters(known[number][1])
        for number in chosen
    }


def recognized(
    model: keras.Model, images: np.ndarray, labels: np.ndarray, classes: list[int]
) -> list[int]:
    """The first correctly classified image of each class."""
    predicted = model.predict(images, batch_size=10, verbose=0).argmax(axis=-1)
    of_classes = ((predicted == labels) & (labels == k) for k in classes)
    return [int(np.argmax(found)) for found in of_classes if found.any()]


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", help="name, folder or .keras file")
    add("--dataset", choices=list(DATASETS), default="digits")
    add("--factor", type=positive(float), default=2.0, help="size of the objects")
    add("--classes", nargs="+", help="by default the first five")
    add("--layers", nargs="+", type=positive(int), help="by default all")
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--download", action="store_true", help="download the data if needed")
    add("--h5", type=Path, metavar="FOLDER", help="read HDF5 files")
    add("--out", type=Path, default=Path("runs/look_inside"))
    options = parser.parse_args()
    names = DATASETS[options.dataset].class_names
    options.classes = options.classes or names[:5]
    if not set(options.classes) <= set(names):
        parser.error(f"--classes must be among {names}")
    return options


@errors_in_one_line()
def main() -> None:
    options = parsed_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    model = from_preset(options.model)
    network = only_layer(model, ScaleChannels).network
    filters = filters_of(network, options.layers)
    save_figure(plot_effective_filters(filters), options.out / "effective_filters.png")

    source = Source(options.data_dir, options.download, options.h5)
    which = options.dataset, "test", options.factor
    images, labels = source.arrays(*which, limit=SEARCHED)
    model = with_input_shape(model, images.shape[1:])
    names = DATASETS[options.dataset].class_names
    classes = [names.index(name) for name in options.classes]
    chosen = recognized(model, images, labels, classes)
    if not chosen:
        raise ValueError(
            "the network recognizes no image of `--classes`. "
            f"Received: {options.classes}"
        )
    images, labels = images[chosen], labels[chosen]
    maps = activation_maps(model, images, labels, SIGMA0, batch_size=1)
    shown = [names[label] for label in labels]
    figure = plot_activation_maps(images, maps, SIGMA0, names=shown)
    save_figure(figure, options.out / "activation_maps.png")
    print(f"Pictures are in {options.out}")


if __name__ == "__main__":
    main()
