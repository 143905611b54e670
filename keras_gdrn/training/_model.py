"""What `fit` does with a model: check it, compile it, and describe it for JSON."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import keras

from keras_gdrn._checks import check_number, check_positive_integer
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.training._batches import TrainingBatches
from keras_gdrn.training._recipe import Recipe

# What serialized objects hold besides what they are: numbers of this process.
_SHARED = re.compile(r', "shared_object_id": \d+')
_POLICY = re.compile(
    r'\{"module": "keras", "class_name": "DTypePolicy", '
    r'"config": \{"name": ("\w+")\}, "registered_name": null\}'
)


def check_model(model: keras.Model) -> None:
    """Raises an error unless the model is a classifier of images."""
    inputs = getattr(model, "inputs", None) or ()  # none, where they are not known
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        raise ValueError(
            "`model` must be a functional or `Sequential` model that begins with "
            "`keras.Input((height, width, channels))`, its only input. Compile any "
            f"other and use `model.fit`. Received: a {type(model).__name__} with the "
            f"inputs {[tuple(image.shape) for image in inputs]}"
        )
    shape = tuple(model.output_shape)
    if len(shape) != 2 or not isinstance(shape[-1], int):
        raise ValueError(
            "`model` must return scores of shape (batch, class). To train for "
            "something else, compile it and use `model.fit`. "
            f"Received: a model with the output shape {shape}"
        )


def checked_class_weight(
    weights: Mapping[int, float] | None, classes: int
) -> dict[int, float] | None:
    """The weights of the classes as Python numbers, for Keras and for JSON."""
    count = max(classes, 2)
    if weights is None:
        return None
    if not isinstance(weights, Mapping) or set(weights) != set(range(count)):
        raise ValueError(
            f"`class_weight` must have a weight for each class from 0 to {count - 1}. "
            f"Received: class_weight={weights!r}"
        )
    for number, weight in weights.items():
        check_number(f"class_weight[{number}]", weight)
    return {int(number): float(weight) for number, weight in weights.items()}


def compile_by(
    model: keras.Model,
    recipe: Recipe,
    steps: int,
    jit_compile: bool | str,
    steps_per_execution: int,
) -> None:
    """Compiles a model by its recipe, for epochs of so many steps."""
    check_positive_integer("steps_per_execution", steps_per_execution)
    # Keras would take a part of the next epoch's data to fill the last execution.
    if steps % steps_per_execution:
        divisors = [n for n in range(1, 65) if steps % n == 0]
        raise ValueError(
            f"`steps_per_execution` must divide the {steps} steps of an epoch, as "
            f"{divisors} do. Received: steps_per_execution={steps_per_execution}"
        )
    model.compile(
        recipe.optimizer(steps),
        recipe.loss(model.output_shape[-1]),
        weighted_metrics=[_accuracy(model.output_shape[-1])],
        jit_compile=jit_compile,
        steps_per_execution=steps_per_execution,
    )
    # The variables must exist before they are restored, and before the first step is
    # traced: otherwise TensorFlow would trace it twice.
    model.optimizer.build(model.trainable_variables)
    nothing = keras.ops.zeros((1, model.output_shape[-1]))
    model.compute_metrics(None, nothing, nothing)
    model.reset_metrics()


def settings(
    model: keras.Model,
    recipe: Recipe,
    batches: TrainingBatches,
    class_weight: Mapping[int, float] | None,
) -> dict[str, Any]:
    """What a run must have in common with the one that it resumes."""
    return {
        **dataclasses.asdict(recipe),
        "batch_size": batches.size,
        "seed": batches.seed,
        "class_weight": class_weight,
        "steps_per_epoch": batches.steps,
        "data": batches.source.identity(),
        "backend": keras.backend.backend(),
        "parameters": parameters(model),
        "architecture": architecture(model),
    }


def parameters(model: keras.Model) -> dict[str, str]:
    """The shape of each weight, and whether it is trained."""
    found = {}
    for number, weight in enumerate(model.weights):
        kind = "" if weight.trainable else ", fixed"
        found[f"{number} {weight.name}"] = f"{tuple(weight.shape)}{kind}"
    return found


def architecture(model: keras.Model) -> Any:
    """The configuration of a model, as Keras serializes it.

    Keras numbers the names that it gives, `dense_7`, on and on: here, those of a model
    are numbered from 0, so that they do not depend on other models.
    """
    text = _POLICY.sub(
        r"\1", _SHARED.sub("", json.dumps(_serialized(model), default=str))
    )
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
        parts = [layer.network] if isinstance(layer, ScaleChannels) else []
        parts += getattr(layer, "layers", [])
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
