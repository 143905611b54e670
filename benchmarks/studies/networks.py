"""Random and trained networks for the benchmarks, with images that suit them."""

import json
from math import ceil
from pathlib import Path

import keras
import numpy as np
from sklearn.datasets import load_sample_images

from keras_gdrn.data import DATASETS, imresize, rescaled_arrays
from keras_gdrn.models import from_preset, gauss_der_resnet, list_presets

PHOTOGRAPH = 96


def random_network(images, neutral: bool) -> keras.Model:
    keras.utils.set_random_seed(1)
    shape, widths = images.shape[1:], (8,) * 9
    model = gauss_der_resnet(shape, 10, widths, 1.2, [1.0], boundary="symmetric")
    if not neutral:
        layers = model._flatten_layers()
        kind = keras.layers.BatchNormalization
        for layer in (x for x in layers if isinstance(x, kind)):
            layer.momentum = 0.0
        model(images, training=True)
    return model


def photographs(count: int) -> np.ndarray:
    """Cuttings of two photographs at half their resolution."""
    random, cuttings = np.random.default_rng(0), []
    for n in range(count):
        photograph = load_sample_images().images[n % 2].astype("float32") / 255
        photograph = imresize(photograph, 0.5)
        y, x = (random.integers(side - PHOTOGRAPH) for side in photograph.shape[:2])
        cuttings.append(photograph[y : y + PHOTOGRAPH, x : x + PHOTOGRAPH])
    return np.stack(cuttings)


def network_and_images(options):
    """A network, and a function from a size factor to its images and their labels."""
    name = options.network
    if name in ("neutral", "random"):
        images = photographs(options.images)
        return random_network(images, name == "neutral"), lambda _: (images, None)
    if name in list_presets():
        dataset, model = name, from_preset(name)
    else:
        results = json.loads((Path(name) / "results.json").read_text())
        dataset = results["experiment"]["dataset"]
        model = keras.saving.load_model(Path(name) / "model.keras")
    canvas = DATASETS[dataset].test_canvas

    def images_at(factor: float) -> tuple:
        return rescaled_arrays(
            dataset,
            "test",
            factor,
            canvas=ceil(canvas * max(factor, 1)),
            limit=options.images,
            data_dir=options.data_dir,
        )

    return model, images_at
