"""Interleaved timings and peak memory of steps, and how they are printed."""

import importlib
import os
import platform
import resource
import time

import keras
import numpy as np


def layer_step(layer, shape, xla: bool, inference: bool = False):
    """A TensorFlow step: forward and, in training, gradients of input and weights."""
    import tensorflow as tf

    x = tf.random.normal(shape)
    upstream = tf.random.normal(layer(keras.KerasTensor(shape)).shape)  # builds it

    @tf.function(jit_compile=xla)
    def step():
        if inference:
            return [layer(x)]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        variables = [weight.value for weight in layer.trainable_weights]
        return tape.gradient(y, [x, *variables], output_gradients=upstream)

    return lambda: tf.nest.map_structure(lambda g: g.numpy(), step())


def model_step(model, images, labels, xla: bool):
    """A step as in `training.fit`, which builds the optimizer before the first.

    Built in the first step, it makes TensorFlow trace that step twice.
    """
    # JAX always compiles.
    options = {"jit_compile": xla} if keras.backend.backend() == "tensorflow" else {}
    model.compile("adamw", "sparse_categorical_crossentropy", **options)

    def step():
        if not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        return model.train_on_batch(images, labels)

    return step


def timed(step) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def interleaved(steps: dict, repeats: int) -> dict[str, list[float]]:
    """Seconds of each step, taken in turn, so that drift hits all alike."""
    for step in steps.values():
        step()
    seconds = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            seconds[name].append(timed(step))
    return seconds


def ratios(seconds: dict[str, list[float]], reference: str) -> dict[str, float]:
    """Median of the ratios to the reference, pair by pair."""
    ones = np.array(seconds[reference])
    return {name: np.median(times / ones) for name, times in seconds.items()}


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def machine() -> str:
    backend = keras.backend.backend()
    version = importlib.import_module(backend).__version__
    return (
        f"{platform.machine()}, {os.cpu_count()} cores; "
        f"{backend} {version}, Keras {keras.__version__}"
    )


def print_header(*cells: str) -> None:
    print()
    print_row(*cells)
    print_row(*["---"] * len(cells))


def print_row(*cells: str) -> None:
    """Prints a row at once, as the next may take long."""
    print("| " + " | ".join(cells) + " |", flush=True)
