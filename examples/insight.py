"""Looking inside a trained network: its filters, and where it answers."""

from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gdrn.data import DATASETS, rescaled_arrays
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock
from keras_gdrn.visualization import (
    activation_maps,
    effective_filters,
    plot_activation_maps,
    plot_effective_filters,
)

SIGMA0 = (0.5, 1.0, 2.0)


def write_insight(
    out: Path, model: keras.Model, dataset: str, factor: float, **options: Any
) -> None:
    """Draws the effective filters of four layers, and activation maps of some classes.

    Args:
        out: folder of the pictures.
        model: applies a `ScaleChannels` of that name.
        dataset: whose test images are looked at.
        factor: their size factor.
        **options: as for `rescaled_arrays`.
    """
    network = model.get_layer("scale_channels").network
    figure = plot_effective_filters(filters_of_some_layers(network))
    figure.savefig(out / "effective_filters.png")
    images, labels = rescaled_arrays(
        dataset, "test", factor, **{**options, "limit": 100}
    )
    classes, first = np.unique(labels, return_index=True)
    chosen = first[:: max(1, len(classes) // 4)][:4]
    maps = activation_maps(model, images[chosen], labels[chosen], SIGMA0)
    names = [DATASETS[dataset].class_names[label] for label in labels[chosen]]
    figure = plot_activation_maps(images[chosen], maps, SIGMA0, names=names)
    figure.savefig(out / "activation_maps.png")


def filters_of_some_layers(network: keras.Model) -> dict[str, np.ndarray]:
    """Effective filters at σ_0 = 1 of the first layer to the last but one."""
    layers = []
    for layer in network.layers:
        if isinstance(layer, GaussDerConv):
            layers.append(layer)
        elif isinstance(layer, GaussDerResidualBlock):
            layers += [layer.conv1, layer.conv2]
    numbers = np.unique(np.linspace(0, max(0, len(layers) - 2), 4).round().astype(int))
    return {f"layer {n + 1}": effective_filters(layers[n]) for n in numbers}
