"""What decides the result of a run, and by which versions it was made."""

import dataclasses
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import keras
from experiments import Experiment

import keras_gdrn
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import head_initializers, scale_channel

_WORDS = ("what", "published")  # about an experiment
_OF_ONE_LAYER = ("name", "trainable", "dtype", "filters", "sigma")
VERSIONS = "versions.json"


def settings(experiment: Experiment, seed: int, images: Any) -> dict[str, Any]:
    """All that decides the result, for JSON: other values are another run.

    `images` is what tells the images from others (see `sources.Source.collect`).
    """
    given = dataclasses.asdict(experiment)
    return {
        **{name: given[name] for name in given if name not in _WORDS},
        "layers": _layers(experiment),
        "seed": seed,
        "precision": keras.config.dtype_policy().name,
        "images": images,
    }


def tell_versions(folder: Path) -> None:
    """Notes the versions that go on with a run, and tells if others began it."""
    file = folder / VERSIONS
    now = versions()
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    if known and known[-1] != now:
        changes = (
            f"{name} {known[-1].get(name)}, now {now[name]}"
            for name in now
            if known[-1].get(name) != now[name]
        )
        print(f"Note: this run was begun with {'; '.join(changes)}.")
    if not known or known[-1] != now:
        file.write_text(json.dumps([*known, now], indent=2) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    backend = keras.backend.backend()
    return {
        "keras_gdrn": keras_gdrn.__version__,
        "keras": keras.__version__,
        "backend": f"{backend} {version(backend)}",
    }


def _layers(experiment: Experiment) -> dict[str, Any]:
    """What the package itself decides: initializers, and so on, of its layers."""
    if experiment.plain:
        return {}
    network = experiment.network
    head = head_initializers(network.head_initializer, zero_order=network.zero_order)
    channel = scale_channel((1, 1, 1), classes=1, widths=[1], ratio=1.0)
    parts = {
        "convolution": GaussDerConv(1, 1.0),
        "normalization": channel.get_layer("stem_bn"),
        "head": GaussDerConv(1, 1.0, **head),
    }
    return {name: _config(layer) for name, layer in parts.items()}


def _config(layer: keras.layers.Layer) -> dict[str, Any]:
    config = layer.get_config()
    return {name: config[name] for name in config if name not in _OF_ONE_LAYER}
