"""Random and trained networks for the studies, with images for them."""

import functools
import json
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import keras
import numpy as np
from sklearn.datasets import load_sample_images

from keras_gdrn.data import DATASETS, imresize, rescaled_arrays
from keras_gdrn.models import (
    from_preset,
    gauss_der_resnet,
    list_presets,
    with_input_shape,
    with_sigma0,
)

PHOTOGRAPH = 96


def percent(*shares: float) -> list[str]:
    return [f"{100 * share:.1f} %" for share in shares]


def spread(values) -> str:
    """The mean and, of several, the standard deviation."""
    text = f"{np.mean(values):.1f}"
    return text if len(values) == 1 else f"{text} ± {np.std(values, ddof=1):.1f}"


def network_and_images(options):
    """A network, and a function from a size factor to its images and their labels.

    At factors above 1 the canvas is as much larger, unless `larger` is false.
    """
    name = options.network
    if name in ("neutral", "random"):
        images = photographs(options.images)
        return random_network(images, name == "neutral"), lambda _: (images, None)
    if name in list_presets():
        dataset, canvas, preset = name, None, from_preset(name)
        scores = image = keras.Input(preset.input_shape[1:])
        # Without the check of values, which magnified edges may exceed.
        for layer in preset.layers[2:]:
            scores = layer(scores)
        model = keras.Model(image, scores)
    else:
        text = (Path(name) / "results.json").read_text(encoding="utf-8")
        experiment = json.loads(text)["experiment"]
        dataset, canvas = experiment["dataset"], experiment["test_canvas"]
        model = keras.saving.load_model(Path(name) / "model.keras")
    canvas = canvas or DATASETS[dataset].test_canvas

    def images_at(factor: float, larger: bool = True) -> tuple:
        side = ceil(canvas * max(factor, 1)) if larger else canvas
        source = {"limit": options.images, "data_dir": options.data_dir}
        return rescaled_arrays(dataset, "test", factor, canvas=side, **source)

    return model, images_at


def scores(
    model,
    images,
    sigma0: Sequence[float] | None = None,
    density="unchanged",
    extent="unchanged",
) -> np.ndarray:
    """`(image, scale, class)` of the scale channels, by default of the network's."""
    sigma0 = tuple(sigma0 or model.get_layer("scale_channels").sigma0)
    channels = _channels(model, images.shape[1:], sigma0, density, extent)
    return channels.predict(images, batch_size=50, verbose=0)


@functools.lru_cache(maxsize=4)
def _channels(model, shape, sigma0, density, extent) -> keras.Model:
    model = with_sigma0(with_input_shape(model, shape), sigma0, density, extent)
    return keras.Model(model.input, model.get_layer("scale_channels").output)


def random_network(images, neutral: bool) -> keras.Model:
    keras.utils.set_random_seed(1)
    shape, widths = images.shape[1:], (8,) * 9
    model = gauss_der_resnet(shape, 10, widths, 1.2, [1.0], boundary="symmetric")
    if not neutral:
        for layer in model._flatten_layers():
            if isinstance(layer, keras.layers.BatchNormalization):
                layer.momentum = 0.0
        model(images, training=True)
    return model


def photographs(count: int) -> np.ndarray:
    """Crops of two photographs at half their resolution."""
    random, crops = np.random.default_rng(0), []
    for n in range(count):
        photograph = load_sample_images().images[n % 2].astype("float32") / 255
        photograph = imresize(photograph, 0.5)
        y, x = (random.integers(side - PHOTOGRAPH) for side in photograph.shape[:2])
        crops.append(photograph[y : y + PHOTOGRAPH, x : x + PHOTOGRAPH])
    return np.stack(crops)


def lit(image: np.ndarray) -> tuple[slice, slice]:
    """The rows and columns of the part that is not black."""
    ends = (np.flatnonzero(image.any(axes))[[0, -1]] for axes in ((1, 2), (0, 2)))
    rows, columns = (slice(first, last + 1) for first, last in ends)
    return rows, columns
