"""Trained networks that come with the package, each with a card of facts."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models._copies import only_layer

FOLDER = Path(__file__).parent / "trained"

# What may differ from the network that was trained: the weights keep their meaning.
_FREE = {
    "classes",
    "epsilon",
    "input_shape",
    "name",
    "receptive_field",
    "scale_dropout",
    "scale_pooling",
    "sigma0",
    "subpixel",
}


@dataclasses.dataclass(frozen=True)
class Trained:
    """The card of trained weights.

    Attributes:
        preset: The network, a key of `PRESETS`.
        class_names: Names of the classes, in the order of the scores.
        images: Images that the network takes, in words.
        image_range: Lowest and highest value of a pixel.
        image_mean: Mean of the pixels that it was trained on.
        data: What it was trained and tested on.
        accuracy: Share of the test images that is recognized, by size factor; the
            network was trained at factor 1 alone.
        test_images: Number of test images at each size, the whole test set.
        parameters: Number of trained parameters.
        command: Command that trained it, with the seed.
        date, environment: When it was trained, on which processor, with which versions.
        limits: What it is not good for.
        sha256: Checksum of the file of weights.
    """

    preset: str
    class_names: tuple[str, ...]
    images: str
    image_range: tuple[float, float]
    image_mean: float
    data: str
    accuracy: Mapping[str, float]
    test_images: int
    parameters: int
    command: str
    date: str
    environment: Mapping[str, Any]
    limits: str
    sha256: str


def _card(path: Path) -> Trained:
    card = json.loads(path.read_text(encoding="utf-8"))
    for name in ("class_names", "image_range"):
        card[name] = tuple(card[name])
    return Trained(**card)


# What can be given as `from_preset(…, weights=NAME)`.
TRAINED: dict[str, Trained] = {
    path.stem: _card(path) for path in sorted(FOLDER.glob("*.json"))
}


def check_architecture(weights: str, network: Mapping[str, Any], trained: Any) -> None:
    """Refuses arguments of a network for which the weights were not trained.

    Args:
        weights: A key of `TRAINED`.
        network: Arguments of `gauss_der_resnet`.
        trained: Those with which the weights were trained.
    """
    for name, value in network.items():
        if name in _FREE or name.endswith("_initializer"):
            continue
        own = trained.get(name)
        if (tuple(value) if isinstance(value, list) else value) != own:
            raise ValueError(
                f"The weights {weights!r} were trained with {name}={own!r}. "
                f"Received: {name}={value!r}"
            )


def load_trained(model: keras.Model, weights: str) -> None:
    """Fills a network of the same architecture with the weights of that name."""
    path = FOLDER / f"{weights}.weights.h5"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != TRAINED[weights].sha256:
        raise ValueError(
            f"The file of the weights {weights!r} is damaged: {path} has the SHA-256 "
            f"{digest}, not {TRAINED[weights].sha256}. Install the package anew"
        )
    model.load_weights(path)


def take_over(model: keras.Model, trained: keras.Model) -> None:
    """Weights layer by layer; a last layer for other classes begins anew."""
    own, other = (only_layer(m, ScaleChannels).network for m in (model, trained))
    for layer in other.layers:
        mine = own.get_layer(layer.name)
        if layer.name == "head" and mine.filters != layer.filters:
            continue
        shapes = [[tuple(w.shape) for w in each.weights] for each in (mine, layer)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                "The weights were trained on images of another number of channels: "
                f"the layer {layer.name!r} has weights of the shapes {shapes[1]}. "
                f"Received: a network with {shapes[0]}"
            )
        mine.set_weights(layer.get_weights())
