"""Compiling a model by a recipe, and which models can be."""

from collections.abc import Mapping
from typing import Any

import keras

from keras_gdrn._checks import check_number, check_positive_integer
from keras_gdrn.training._recipe import Recipe


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


def _accuracy(classes: int) -> str | keras.metrics.Metric:
    if classes > 1:
        return "accuracy"

    def is_correct(labels: Any, scores: Any) -> Any:
        return keras.ops.equal(labels > 0.5, scores > 0)

    return keras.metrics.MeanMetricWrapper(is_correct, name="accuracy")
