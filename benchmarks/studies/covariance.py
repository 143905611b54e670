"""Errors of scale covariance: where they arise, what they cost; effect of windows.

    python benchmarks/studies/covariance.py scores --network random
    python benchmarks/studies/covariance.py layers --network neutral
    python benchmarks/studies/covariance.py scores --network digits
    python benchmarks/studies/covariance.py windows --network mnist --images 600

An image seen at the initial scale σ_0 is compared with the same image, magnified by S,
at S σ_0: the root mean square difference, relative to how much the expected values
vary between the images. Images are magnified exactly, as the sum of cosines that
passes through their pixels. The networks:

- `neutral` and `random`: a channel of 18 layers with He's weights, on photographs of
  scikit-learn; batch normalization has mean 0 and variance 1, or the statistics of the
  photographs at σ_0 = 1, as in training;
- `digits` and the other names of `list_presets()`: networks that come with the package;
- a folder of a run of `examples/paper/reproduce.py`.

Trained networks are given test images at the size factor σ_0, so that an object is as
large as the scale channel expects.

`scores`: the error with the center of the image on a pixel, of the images as they are
and blurred by 2 pixels; with the center between four pixels, of which central selection
takes the mean; the change of the scores if the larger image is made by `imresize`; the
share of images that keep their class in this one scale channel; its accuracy for the
image and for the magnified one. `layers`: the error of each layer's features at the
center. Both are on grids, or with `--pixels` of kernels on the pixels. `windows`, of q
standard deviations, against whole maps: the root mean square change of the scores of
all scale channels, relative to that of the scores; the images that keep their class;
both accuracies.
"""

import argparse
import os
from collections.abc import Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import numpy as np
from magnify import magnified, magnified_as_imresize
from networks import network_and_images, percent, scores

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import imresize
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock
from keras_gdrn.models import feature_extractor, with_input_shape, with_sigma0
from keras_gdrn.visualization import markdown_table

SCALES = (0.5, 1.0, 2.0)
EXTENTS = (2.0, 2.5, 3.0, 3.5, 5.0)
SMOOTH = 2.0  # pixels, the blur of the images without fine details


def error(actual, expected) -> float:
    variation = expected - expected.mean(axis=0)
    return np.linalg.norm(actual - expected) / np.linalg.norm(variation)


def compare_scores(model, images_at, options) -> list[list[str]]:
    """Covariance errors of the scores, with each part of the error separately."""
    titles = ("natural", "smooth", "even canvas", "bicubic", "same class")
    rows = [["σ_0", "S", *titles, "accuracy", "magnified"]]
    factor = options.factor
    for sigma0 in SCALES:

        def seen(images, scale=1.0, sigma0=sigma0):
            scales = [scale * sigma0]
            found = scores(model, images, scales, options.density, options.extent)
            return found[:, 0]

        images, labels = images_at(sigma0)
        pairs = [
            [seen(magnified(images, s, *canvas), s) for s in (factor, 1)]
            for canvas in ((True,), (True, SMOOTH), (False,))
        ]
        bicubic = imresize(images, factor), magnified_as_imresize(images, factor)
        pairs.append([seen(image, factor) for image in bicubic])
        after, before = (found.argmax(-1) for found in pairs[0])
        shares = [error(*pair) for pair in pairs] + [np.mean(before == after)]
        if labels is not None:
            shares += [np.mean(before == labels), np.mean(after == labels)]
        cells = [f"{sigma0:g}", f"{factor:.3g}", *percent(*shares)]
        rows.append(cells + ["–"] * (len(rows[0]) - len(cells)))
    return rows


def compare_layers(model, images_at, options) -> list[list[str]]:
    """Covariance errors of each layer's features at the center, for each σ_0."""
    network = model.get_layer("scale_channels").network
    kinds = (GaussDerConv, GaussDerResidualBlock)
    names = [layer.name for layer in network.layers if isinstance(layer, kinds)]

    def central(images, sigma0: float) -> Iterator[np.ndarray]:
        at = with_input_shape(model, images.shape[1:])
        at = with_sigma0(at, [sigma0], options.density, None)
        for name in names:
            layer = feature_extractor(at, name)
            maps = layer.predict(images, batch_size=20, verbose=0)
            yield maps[:, 0, maps.shape[2] // 2, maps.shape[3] // 2]

    rows = [["layer", *(f"σ_0 = {sigma0:g}" for sigma0 in SCALES)]]
    errors = []
    for sigma0 in SCALES:
        images, _ = images_at(sigma0)
        seen = [(magnified(images, s), s * sigma0) for s in (options.factor, 1.0)]
        of_layers = zip(*(central(*at) for at in seen), strict=True)
        errors.append([error(*pair) for pair in of_layers])
    return rows + [
        [name, *percent(*of_layer)]
        for name, of_layer in zip(names, np.transpose(errors), strict=True)
    ]


def compare_windows(model, images_at, options) -> list[list[str]]:
    """How windows change a network's scores and predicted classes."""
    rows = [["q", "size", "change", "same class", "accuracy", "whole maps"]]
    for factor in (0.5, 1.0, 2.0):
        images, labels = images_at(factor, larger=False)
        whole = scores(model, images, extent=None)
        before = whole.max(1).argmax(-1)
        for extent in EXTENTS:
            found = scores(model, images, extent=extent)
            after = found.max(1).argmax(-1)
            change = np.linalg.norm(found - whole) / np.linalg.norm(whole)
            pairs = (after, before), (after, labels), (before, labels)
            same = (np.mean(one == other) for one, other in pairs)
            rows.append([f"{extent:g}", f"{factor:g}", *percent(change, *same)])
    return rows


PARTS = {
    "scores": compare_scores,
    "layers": compare_layers,
    "windows": compare_windows,
}


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("part", choices=PARTS)
    add("--network", default="digits", help="neutral, random, a preset or a run")
    add("--images", type=positive(int), default=24)
    add("--factor", type=positive(float), default=2.0, help="S")
    none = {"action": "store_const", "const": None, "default": "unchanged"}
    add("--whole-maps", dest="extent", **none, help="no windows")
    add("--pixels", dest="density", **none, help="kernels on the pixels")
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    options = parser.parse_args()
    untrained = options.network in ("neutral", "random")
    if untrained and options.part == "windows":
        parser.error(f"windows needs a trained network, not {options.network!r}")
    rows = PARTS[options.part](*network_and_images(options), options)
    table = markdown_table(rows)
    print(f"{options.network}, {options.images} images\n\n{table}")


if __name__ == "__main__":
    main()
