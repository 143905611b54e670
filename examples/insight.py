"""Looking inside a trained network: its filters, and where it answers."""

from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np

from keras_gdrn.data import DATASETS
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock
from keras_gdrn.models import with_input_shape
from keras_gdrn.visualization import (
    activation_maps,
    effective_filters,
    plot_activation_maps,
    plot_effective_filters,
)

SIGMA0 = (0.5, 1.0, 2.0)
# Those of the paper's figure; CIFAR-10 calls a car an automobile.
CLASSES = ("bird", "car", "automobile", "dog", "monkey", "ship")
ROWS = 5


def write_insight(
    out: Path, model: keras.Model, images: np.ndarray, labels: np.ndarray, dataset: str
) -> None:
    """Draws the effective filters of four layers, and activation maps of some classes.

    Source: Perzanowski & Lindeberg, Figs. learned-filters-standard-appendix and
    activation-maps-stl10.

    Args:
        out: Folder of the pictures.
        model: Model that applies a `ScaleChannels` of that name.
        images, labels: Test images; those that are classified correctly are drawn.
        dataset: Name of the data set of these images.
    """
    network = model.get_layer("scale_channels").network
    figure = plot_effective_filters(filters_of_some_layers(network))
    figure.savefig(out / "effective_filters.png")
    model = with_input_shape(model, images.shape[1:])
    class_names = DATASETS[dataset].class_names
    chosen = correct_images(model, images, labels, class_names)
    if not chosen:
        print("No test image was classified correctly: there are no activation maps.")
        return
    images, labels = images[chosen], labels[chosen]
    maps = activation_maps(model, images, labels, SIGMA0, batch_size=1)
    names = [class_names[label] for label in labels]
    figure = plot_activation_maps(images, maps, SIGMA0, names=names)
    figure.savefig(out / "activation_maps.png")


def correct_images(
    model: keras.Model, images: np.ndarray, labels: np.ndarray, class_names: tuple
) -> list[int]:
    """The first image of some classes that is classified correctly: their indices.

    The classes are the paper's where the data set has them, or spread over all.
    """
    wanted = [class_names.index(name) for name in CLASSES if name in class_names]
    if not wanted:
        present = np.unique(labels)
        wanted = list(present[:: max(1, len(present) // ROWS)][:ROWS])
    found = (first_correct(model, images, labels, label) for label in wanted)
    return [index for index in found if index is not None]


def first_correct(
    model: keras.Model, images: np.ndarray, labels: np.ndarray, label: int
) -> int | None:
    for index in np.flatnonzero(labels == label):
        scores = keras.ops.convert_to_numpy(model(images[index : index + 1]))
        if scores[0].argmax() == label:
            return int(index)
    return None


def filters_of_some_layers(network: keras.Model) -> dict[str, np.ndarray]:
    """Effective filters at σ_0 = 1 of four layers, of 18 the paper's: 2, 10, 11, 17.

    They are an early layer, the two of a block in the middle, and the last but one.
    """
    layers = list(convolutions(network))
    middle, last = 2 * (len(layers) // 4 + 1), max(1, len(layers) - 1)
    numbers = sorted({min(n, last) for n in (2, middle, middle + 1, last)})
    return {f"layer {n}": effective_filters(layers[n - 1]) for n in numbers}


def convolutions(network: keras.Model) -> Iterator[GaussDerConv]:
    for layer in network.layers:
        if isinstance(layer, GaussDerConv):
            yield layer
        elif isinstance(layer, GaussDerResidualBlock):
            yield from (layer.conv1, layer.conv2)
