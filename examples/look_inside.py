"""Looks inside a trained network: its filters, and where each scale answers.

    python examples/look_inside.py digits
    python examples/look_inside.py runs/mnist/model.keras --dataset mnist --out pictures

draws to the folder `--out`: the effective filters of each layer, as they are at σ_0 = 1
(effective_filters.png), and for test images of some classes the maps from which the
network answers, at three initial scales (activation_maps.png).
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, rescaled_arrays
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock, ScaleChannels
from keras_gdrn.models import from_preset, only_layer, with_input_shape
from keras_gdrn.visualization import (
    activation_maps,
    effective_filters,
    plot_activation_maps,
    plot_effective_filters,
)

SIGMA0 = (0.5, 1.0, 2.0)
SEARCHED = 100  # images among which each class is looked for


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="name, folder or .keras file")
    parser.add_argument("--dataset", choices=list(DATASETS), default="digits")
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--classes", type=positive(int), default=5, help="how many")
    parser.add_argument("--out", type=Path, default=Path("runs/look_inside"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    model = from_preset(options.model)

    filters = {}
    for layer in only_layer(model, ScaleChannels).network.layers:
        if isinstance(layer, GaussDerConv):
            filters[layer.name] = effective_filters(layer)
        elif isinstance(layer, GaussDerResidualBlock):
            filters[f"{layer.name}, 1"] = effective_filters(layer.conv1)
            filters[f"{layer.name}, 2"] = effective_filters(layer.conv2)
    plot_effective_filters(filters).savefig(options.out / "effective_filters.png")

    info = DATASETS[options.dataset]
    images, labels = rescaled_arrays(
        options.dataset, "test", limit=SEARCHED, data_dir=options.data_dir
    )
    # The first image of each class.
    _, chosen = np.unique(labels, return_index=True)
    images, labels = (array[chosen[: options.classes]] for array in (images, labels))
    model = with_input_shape(model, images.shape[1:])
    maps = activation_maps(model, images, labels, SIGMA0, batch_size=1)
    names = [info.class_names[label] for label in labels]
    figure = plot_activation_maps(images, maps, SIGMA0, names=names)
    figure.savefig(options.out / "activation_maps.png")
    print(f"Pictures are in {options.out}")


if __name__ == "__main__":
    main()
