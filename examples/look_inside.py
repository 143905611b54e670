"""Draws a trained network: its filters, and its activation maps at three scales.

    python examples/look_inside.py digits
    python examples/look_inside.py runs/mnist/model.keras --dataset mnist --out pictures
    python examples/look_inside.py runs/stl10_average-full/model.keras --dataset stl10 \
        --classes bird car dog monkey ship

writes two pictures to the folder `--out`. effective_filters.png has the effective
filters of each layer at σ_0 = 1, as in Sec. A.6. activation_maps.png has the activation
maps of the first correctly classified test image of each class, at three initial
scales, as in Sec. 8.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from keras_gdrn.commands import errors_in_one_line, save_figure
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
SEARCHED = 100  # test images


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="name, folder or .keras file")
    parser.add_argument("--dataset", choices=list(DATASETS), default="digits")
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--classes", nargs="+", help="by default the first five")
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
    save_figure(plot_effective_filters(filters), options.out / "effective_filters.png")

    names = DATASETS[options.dataset].class_names
    wanted = options.classes or names[:5]
    if not set(wanted) <= set(names):
        parser.error(f"--classes must be among {names}")
    images, labels = rescaled_arrays(
        options.dataset, "test", limit=SEARCHED, data_dir=options.data_dir
    )
    model = with_input_shape(model, images.shape[1:])
    correct = model.predict(images, batch_size=10, verbose=0).argmax(axis=-1) == labels
    of_classes = (correct & (labels == names.index(name)) for name in wanted)
    chosen = [int(np.argmax(found)) for found in of_classes if found.any()]
    if not chosen:
        raise ValueError(f"The network recognizes no --classes. Received: {wanted}")
    images, labels = images[chosen], labels[chosen]
    maps = activation_maps(model, images, labels, SIGMA0, batch_size=1)
    shown = [names[label] for label in labels]
    figure = plot_activation_maps(images, maps, SIGMA0, names=shown)
    save_figure(figure, options.out / "activation_maps.png")
    print(f"Pictures are in {options.out}")


if __name__ == "__main__":
    main()
