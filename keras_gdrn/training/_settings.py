"""All that decides a run, for JSON."""

import dataclasses
import itertools
import re
import zlib
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.training._recipe import Recipe

# Entries of a configuration that do not decide what a layer does.
_BESIDE = {"build_config", "compile_config", "module", "registered_name"}
_BESIDE |= {"shared_object_id"}


def settings(
    model: keras.Model,
    recipe: Recipe,
    data: Any,
    *,
    seed: int,
    steps: int,
    class_weight: Mapping[int, float] | None,
) -> dict[str, Any]:
    """What a run must have in common with the one that it goes on with."""
    values = {
        **dataclasses.asdict(recipe),
        "seed": seed,
        "class_weight": class_weight,
        "steps_per_epoch": steps,
        "data": fingerprint(data),
        "input_shape": model.input_shape,
        "backend": keras.backend.backend(),
        "parameters": parameters(model),
        "dtype_policy": model.dtype_policy.name,
        "architecture": architecture(model),
    }
    for layer in model.layers:
        if isinstance(layer, ScaleChannels):
            values["sigma0"] = layer.sigma0
        if isinstance(layer, ScalePooling):
            values["scale_pooling"] = "max" if _has_one_channel(model) else layer.mode
    return values


def _has_one_channel(model: keras.Model) -> bool:
    """Whether there is one scale channel: all poolings over it are the same."""
    layers = [layer for layer in model.layers if isinstance(layer, ScaleChannels)]
    return len(layers) == 1 and len(layers[0].sigma0) == 1


def fingerprint(data: Any) -> Any:
    """What tells data from others of the same size.

    Of arrays, all they hold. Of a `tf.data.Dataset` only the shapes and types: it is
    another one in each iteration.
    """
    if not isinstance(data, tuple):
        return str(data.element_spec)
    arrays = map(np.ascontiguousarray, data)
    return [
        f"{a.dtype}{list(a.shape)} {zlib.crc32(a.view('uint8').data):08x}"
        for a in arrays
    ]


def parameters(model: keras.Model) -> dict[str, str]:
    """The shape of each weight, and whether it is trained."""
    found = {}
    for number, weight in enumerate(model.weights):
        kind = "" if weight.trainable else ", fixed"
        found[f"{number} {weight.name}"] = f"{tuple(weight.shape)}{kind}"
    return found


def architecture(model: keras.Layer) -> Any:
    """The configuration of a model, with names that do not depend on other models."""
    try:
        config = keras.saving.serialize_keras_object(model)
    except NotImplementedError:  # a user's own layer, without `get_config`
        return _architecture_of_parts(model)
    plain = _plain(config, {})
    for layer in plain.get("layers", {}).values():
        kind = layer["class_name"]
        if kind == "ScalePooling" and _has_one_channel(model):
            layer.update(mode="max", dropout=0.0)  # neither is of influence
        on_pixels = kind == "ScaleChannels" and (
            min(layer["sigma0"]) >= 1 or not layer["subpixel"]
        )
        if on_pixels:  # as in runs from before there was the choice
            del layer["subpixel"]
    return plain


def _architecture_of_parts(layer: keras.Layer) -> Any:
    """What can be told of a layer that has no configuration, or holds one without."""
    parts = list(getattr(layer, "layers", []))
    found: dict[str, Any] = {"class_name": type(layer).__name__}
    if isinstance(layer, ScaleChannels):
        parts = [layer.network]
        found |= {"receptive_field": layer.receptive_field, "subpixel": layer.subpixel}
    return found | {"layers": {str(n): architecture(p) for n, p in enumerate(parts)}}


def _plain(value: Any, names: dict[str, str]) -> Any:
    """A configuration with short paths, of the same names whenever it is made."""
    if isinstance(value, Mapping):
        return _plain_object(value, names)
    if isinstance(value, list | tuple):
        if len(value) == 3 and [type(part) for part in value[1:]] == [int, int]:
            return [_name(value[0], names), *value[1:]]  # where a tensor comes from
        return [_plain(part, names) for part in value]
    return value if isinstance(value, int | float | str | None) else str(value)


def _plain_object(value: Mapping[str, Any], names: dict[str, str]) -> Any:
    config = value.get("config")
    if value.get("class_name") == "DTypePolicy" and config:
        return config["name"]
    if "class_name" in value and isinstance(config, Mapping):
        value = {**value, **config, "config": None}
    parts = {
        str(key): _name(part, names) if key == "name" else _plain(part, names)
        for key, part in value.items()
        if key not in _BESIDE and part is not None
    }
    if isinstance(parts.get("layers"), list):  # told by their names, if they differ
        layers = enumerate(parts["layers"])
        parts["layers"] = {f"{n} {layer.get('name')}": layer for n, layer in layers}
    return parts


def _name(name: Any, names: dict[str, str]) -> Any:
    """Keras numbers the names that it gives, `dense_7`, on and on: here, from 0."""
    if not isinstance(name, str):
        return name
    if name not in names:
        stem = re.sub(r"_\d+$", "", name)
        numbered = (f"{stem}_{n}" for n in itertools.count(1))
        candidates = itertools.chain([stem], numbered)
        names[name] = next(c for c in candidates if c not in names.values())
    return names[name]
