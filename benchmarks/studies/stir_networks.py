"""What `stir.py` trains: the package's network and its alternatives.

All end in the maximum over all positions and have about as many parameters. For the
package's network, MNIST gets elastic augmentation. The peers are a plain network of 3×3
convolutions: as it is; with objects resized to any size in training; and applied to the
image at nine sizes, with the largest of all scores.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
from common import lit
from foveation import Foveation
from keras import layers
from PIL import Image

from keras_gdrn.data import STIR_SCENARIOS, STIR_SIZES
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.training import Augmentation, Recipe, Stage

OURS, SIDE = "gauss_der", 64
SCALES = tuple(2 ** (k / 2) for k in range(-2, 4))


def resized(images: np.ndarray, copies: int, seed: int) -> np.ndarray:
    """Copies of each image, with its object at a random size and position."""
    random = np.random.default_rng(seed)
    made = np.zeros((copies, *images.shape[:3]), "float32")
    for index in np.ndindex(made.shape[:2]):
        rows, columns = lit(images[index[1]])
        part = images[index[1], rows, columns, 0]
        scale = random.choice(STIR_SIZES) / max(part.shape)
        height, width = (max(1, round(scale * length)) for length in part.shape)
        object_ = Image.fromarray(part).resize(
            (width, height), Image.Resampling.BICUBIC
        )
        y, x = (random.integers(SIDE + 1 - length) for length in (height, width))
        made[index][y : y + height, x : x + width] = np.clip(object_, 0, 1)
    return made.reshape(-1, *images.shape[1:])


@dataclasses.dataclass(frozen=True)
class Training(Stage):
    """A stage of training, and its images.

    Attributes:
        sizes: Of the objects, in pixels.
        copies: Resized copies of each image; 0 for the images as they are.
    """

    sizes: tuple[int, ...] = ()
    copies: int = 0


def gauss_der(classes: int) -> keras.Model:
    return gauss_der_resnet(
        (SIDE, SIDE, 1),
        classes,
        widths=(12, 16, 24, 32),
        ratio=1.35,
        sigma0=SCALES,
        spatial_selection="max",
        head_initializer="he_uniform",
    )


# Scales and side of the training images, in each scenario.
SEEN = {
    1: (SCALES[1:3], 40),
    2: (SCALES[3:5], 56),
    3: (SCALES[4:6], SIDE),
    4: (SCALES, SIDE),
}
# Chosen on each validation split.
EMOJI_EPOCHS = {1: 10, 2: 32, 3: 32, 4: 6}
MNIST_EPOCHS = 8  # not tuned


def training(data: str, scenario: int) -> list[Training]:
    """The stages of the package's network.

    On MNIST at all sizes the small ones come first, which cost a fifth, for many
    epochs; then a quarter of all sizes.
    """
    sizes = STIR_SCENARIOS[scenario]
    if data == "emoji":
        return [_stage(data, "all", sizes, scenario, EMOJI_EPOCHS[scenario])]
    if scenario < 4:
        return [_stage(data, "all", sizes, scenario, MNIST_EPOCHS)]
    small = _stage(data, "small", STIR_SCENARIOS[1], 1, MNIST_EPOCHS)
    return [small, _stage(data, "all", sizes[::4], scenario, 1, rate=0.005)]


def _stage(
    data: str,
    name: str,
    sizes: tuple[int, ...],
    scenario: int,
    epochs: int,
    rate: float = 0.01,
) -> Training:
    sigma0, side = SEEN[scenario]
    # Equally steep at any size: spline coefficients are a fifth of the side apart.
    bending = Augmentation(elastic=side / 12 if data == "mnist" else 0.0)
    recipe = Recipe(epochs, 24, learning_rate=rate, augmentation=bending)
    return Training(name, recipe, sigma0, (side, side, 1), sizes)


def cnn(classes: int) -> keras.Model:
    """Seven convolutions, three halvings; the receptive field is 52×52 pixels."""
    x = image = keras.Input((SIDE, SIDE, 1))
    for index, filters in enumerate((12, 12, 16, 16, 24, 24, 32)):
        x = layers.MaxPooling2D(2)(x) if index in (2, 4, 6) else x
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
        x = layers.ReLU()(x)
    scores = layers.Conv2D(classes, 1)(x)
    return keras.Model(image, layers.GlobalMaxPooling2D()(scores), name="cnn")


def pyramid(classes: int) -> keras.Model:
    """The same on the image at nine sizes, from its own down to a quarter."""
    image = keras.Input((SIDE, SIDE, 1))
    channel = keras.Model(image, cnn(classes)(Foveation(SIDE)(image)))
    views = [2 ** (k / 4) for k in range(9)]
    scores = ScaleChannels(channel, views, density=None)(image)
    return keras.Model(image, ScalePooling("max")(scores), name="pyramid")


class Peer(NamedTuple):
    """A network, and its training: epochs by data, and resized copies."""

    build: Callable[[int], keras.Model]
    learning_rate: float
    epochs: dict[str, int]
    copies: int = 0

    def training(self, data: str, scenario: int) -> list[Training]:
        recipe = Recipe(self.epochs[data], 24, learning_rate=self.learning_rate)
        images = {"sizes": STIR_SCENARIOS[scenario], "copies": self.copies}
        return [Training("all", recipe, **images)]


PEERS = {
    "cnn": Peer(cnn, 0.01, {"emoji": 45, "mnist": 10}),
    "cnn_resized": Peer(cnn, 0.003, {"emoji": 10, "mnist": 4}, copies=10),
    "pyramid": Peer(pyramid, 0.003, {"emoji": 30, "mnist": 3}),
}
