"""Checks a model for `fit`, makes its variables, and describes it for JSON."""

import collections
import json
import re
from typing import Any

import keras


def check_model(model: keras.Model) -> None:
    """Raises an error unless the model is a classifier of images."""
    parts = getattr(model, "inputs", None), getattr(model, "outputs", None)
    images, scores = ([tuple(part.shape) for part in of or ()] for of in parts)
    fits = list(map(len, images)) == [4] and list(map(len, scores)) == [2]
    if not fits or scores[0][1] in (None, 1):
        raise ValueError(
            "`model` must be a functional or `Sequential` model from one input, "
            "`keras.Input((height, width, channels))`, to scores (batch, class) of two "
            "or more classes. Compile any other and use `model.fit`. Received: a "
            f"{type(model).__name__} from {images} to {scores}"
        )


def make_variables(model: keras.Model) -> None:
    """Makes the variables that a compiled model would make in its first step.

    They must exist before they are restored, and before the first step is traced:
    otherwise TensorFlow would trace it twice.
    """
    model.optimizer.build(model.trainable_variables)
    nothing = keras.ops.zeros((1, model.output_shape[-1]))
    model.compute_metrics(None, nothing, nothing)
    model.reset_metrics()


def comparable_config(model: keras.Model) -> Any:
    """The config of a model; the classes of its layers if one has no `get_config`."""
    try:
        config = model.get_config()
    except NotImplementedError:
        config = {"layers": [type(part).__name__ for part in model._flatten_layers()]}
    else:
        _reset_unused_pooling(config.get("layers", []))
    return _renamed({"class_name": type(model).__name__, **config})


def _renamed(config: dict[str, Any]) -> Any:
    """The config with a new process' names, as Keras keeps counting: `dense_7`."""
    text = json.dumps(config, default=str)
    names, counts = {}, collections.Counter()
    for name in dict.fromkeys(re.findall(r'"name": "([^"]+)"', text)):
        stem = re.sub(r"_\d+$", "", name)
        names[name] = f"{stem}_{counts[stem]}" if counts[stem] else stem
        counts[stem] += 1
    text = re.sub(r'"([^"]+)"', lambda m: f'"{names.get(m[1], m[1])}"', text)
    return json.loads(text)


def _reset_unused_pooling(layers: list[dict[str, Any]]) -> None:
    """Resets the pooling of a single scale channel, on which it has no effect.

    So one training of a single channel serves networks with any pooling.
    """
    of_kind = {layer["class_name"]: layer["config"] for layer in layers}
    sigma0 = of_kind.get("ScaleChannels", {}).get("sigma0", [])
    if len(sigma0) == 1 and "ScalePooling" in of_kind:
        of_kind["ScalePooling"].update(mode="max", dropout=0.0)
