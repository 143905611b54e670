"""What `fit` does with a model: check it, compile it, and describe it for JSON."""

import contextlib
import json
import re
from typing import Any

import keras

from keras_gdrn.training._recipe import Recipe

# Keras tells by them which objects are one and the same: numbers of this process.
_SHARED = re.compile(r', "shared_object_id": \d+')
# What is but a name: a precision.
_POLICY = re.compile(
    r'\{"module": "keras", "class_name": "DTypePolicy", '
    r'"config": \{"name": ("\w+")\}, "registered_name": null\}'
)


def check_model(model: keras.Model) -> None:
    """Raises an error unless the model is a classifier of images."""
    parts = getattr(model, "inputs", None), getattr(model, "outputs", None)
    images, scores = ([tuple(part.shape) for part in of or ()] for of in parts)
    fits = list(map(len, images)) == [4] and list(map(len, scores)) == [2]
    if not fits or scores[0][1] is None:
        raise ValueError(
            "`model` must be a functional or `Sequential` model from one input, "
            "`keras.Input((height, width, channels))`, to scores (batch, class). "
            "Compile any other and use `model.fit`. Received: a "
            f"{type(model).__name__} from {images} to {scores}"
        )


def compile_by(
    model: keras.Model, recipe: Recipe, steps: int, jit_compile: bool | str
) -> None:
    """Compiles a model by its recipe, for epochs of so many steps."""
    classes = model.output_shape[-1]
    model.compile(
        recipe.optimizer(steps),
        recipe.loss(classes),
        weighted_metrics=[_accuracy(classes)],
        jit_compile=jit_compile,
    )
    # The variables must exist before they are restored, and before the first step is
    # traced: otherwise TensorFlow would trace it twice.
    model.optimizer.build(model.trainable_variables)
    nothing = keras.ops.zeros((1, classes))
    model.compute_metrics(None, nothing, nothing)
    model.reset_metrics()


def parameters(model: keras.Model) -> dict[str, str]:
    """The shape of each weight, and whether it is trained."""
    return {
        f"{number} {weight.name}": f"{tuple(weight.shape)}"
        f"{'' if weight.trainable else ', fixed'}"
        for number, weight in enumerate(model.weights)
    }


def architecture(model: keras.Model) -> Any:
    """The configuration of a model, as Keras serializes it.

    Keras numbers the names that it gives, `dense_7`, on and on: here, those of a model
    are numbered from 0, so that they do not depend on other models.
    """
    text = json.dumps(_serialized(model), default=str)
    text = _POLICY.sub(r"\1", _SHARED.sub("", text))
    names = dict.fromkeys(re.findall(r'"name": "([^"]+)"', text))
    for number, name in enumerate(names):
        stem = re.sub(r"_\d+$", "", name)
        text = text.replace(f'"{name}"', f'"{stem} #{number}"')
    config = json.loads(text)
    with contextlib.suppress(KeyError, TypeError):
        _ignore_what_has_no_effect(config["config"]["layers"])
    return config


def _serialized(layer: Any) -> dict[str, Any]:
    try:
        config = keras.saving.serialize_keras_object(layer)
        return {name: part for name, part in config.items() if name != "compile_config"}
    except NotImplementedError:  # it is, or it holds, a layer without `get_config`
        parts = layer._flatten_layers(include_self=False, recursive=False)
        name = type(layer).__name__
        return {"class_name": name, "layers": [_serialized(part) for part in parts]}


def _ignore_what_has_no_effect(layers: list[dict[str, Any]]) -> None:
    """So that one training of one scale channel serves networks of many kinds.

    Whatever pools it, it is the same; and from σ_0 = 1 on it has no pixels between
    pixels.
    """
    of_kind = {layer["class_name"]: layer["config"] for layer in layers}
    sigma0 = of_kind.get("ScaleChannels", {}).get("sigma0", [])
    if len(sigma0) == 1 and "ScalePooling" in of_kind:
        of_kind["ScalePooling"].update(mode="max", dropout=0.0)
    if sigma0 and min(sigma0) >= 1:
        del of_kind["ScaleChannels"]["subpixel"]


def _accuracy(classes: int) -> str | keras.metrics.Metric:
    if classes > 1:
        return "accuracy"

    def is_correct(labels: Any, scores: Any) -> Any:
        return keras.ops.equal(labels > 0.5, scores > 0)

    return keras.metrics.MeanMetricWrapper(is_correct, name="accuracy")
