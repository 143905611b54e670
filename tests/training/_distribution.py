"""Training on virtual devices, or as one of two JAX processes.

It is a process of its own, for the number of devices is fixed before the first tensor
is made. Arguments: `devices FILE` or `process FILE HOST:PORT NUMBER`.
"""

import contextlib
import dataclasses
import json
import sys
from pathlib import Path

import keras
import tensorflow as tf
from keras import layers

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.layers import GaussDerConv, ScaleChannels, ScalePooling
from keras_gdrn.training import Augmentation, Recipe, fit, on_devices

DEVICES = 2
BACKEND = keras.backend.backend()
TRAINING = rescaled_arrays("digits", "train", canvas=12, limit=32)
VALIDATION = rescaled_arrays("digits", "test", canvas=12, limit=29)
# Two devices cannot share 17 images: they are given 16.
RECIPE = Recipe(2, 17, augmentation=Augmentation(flip=0.5, brightness=0.2))
WHOLE = dataclasses.replace(RECIPE, batch_size=16)


def network(dropout: float = 0.0) -> keras.Model:
    """Batch normalization in a network in a layer, and dropout.

    No parameter has a gradient of zero in theory, whose rounding errors the optimizer
    would blow up to whole steps: so no bias before the normalization.
    """
    keras.utils.set_random_seed(0)
    image = keras.Input((12, 12, 1))
    x = GaussDerConv(4, 1.0, order=1, use_bias=False)(image)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))
    x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    channels = ScaleChannels(keras.Model(image, x), [0.5, 0.7])
    pooling = ScalePooling("average", dropout=dropout)
    return keras.Model(image, pooling(channels(image)))


def trained(count, dropout=0.0, recipe=RECIPE, **options) -> dict:
    with on_devices(count):
        model = network(dropout)
        history = fit(model, recipe, TRAINING, verbose=0, **options).history
    history.pop("seconds")
    return {
        "history": history,
        "weights": [weight.tolist() for weight in model.get_weights()],
        "devices": devices_of(model),
        "synchronized": [
            part["config"]["synchronized"]
            for part in model.layers[1].network.get_config()["layers"]
            if part["class_name"] == "BatchNormalization"
        ],
    }


class Interruption(keras.callbacks.Callback):
    """In the second epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if self.epoch and batch:
            raise KeyboardInterrupt


def in_two_calls(folder: Path) -> dict:
    """What is trained on all devices, with an interruption in the second epoch."""
    options = {"out": folder, "validation_data": VALIDATION}
    with contextlib.suppress(KeyboardInterrupt):
        stop = Interruption()
        trained("all", callbacks=stop, checkpoint_minutes=0, **options)
    return trained("all", **options)


def devices_of(model: keras.Model) -> int:
    value = model.weights[0].value
    if BACKEND == "jax":
        return len(value.sharding.device_set)
    return len(getattr(value, "values", [value]))


def draws() -> list:
    """What the devices draw for the dropout of their shares of a batch."""
    from keras_gdrn.training._callbacks import Run
    from keras_gdrn.training._checkpoint import State

    def drawn():
        return keras.random.uniform((8,), seed=model.layers[-1].seed_generator)

    def begin(model):
        run = Run(0, 1, State(), None, True, None, 0)
        run.set_model(model)
        run.set_params({"steps": 1})
        run.on_train_begin()
        run.on_epoch_begin(0)

    with on_devices("all"):
        model = network(dropout=0.3)
        begin(model)
        strategy = tf.distribute.get_strategy()
        found = strategy.experimental_local_results(strategy.run(drawn))
    model = network(dropout=0.3)
    begin(model)
    return [value.numpy().tolist() for value in (drawn(), *found)]


def refused(scope, recipe=RECIPE, model=None, **options) -> str:
    """The error that training ends with; the model is built in the scope."""
    try:
        with scope:
            fit(model or network(), recipe, TRAINING, verbose=0, **options)
    except (RuntimeError, ValueError, FileExistsError) as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def on_virtual_devices(folder: Path) -> dict:
    if BACKEND == "tensorflow":
        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(DEVICES)]
        tf.config.set_logical_device_configuration(cpu, parts)
    results: dict = {
        "one": trained(1, recipe=WHOLE, validation_data=VALIDATION),
        "all": in_two_calls(folder),
        "built elsewhere": refused(on_devices("all"), model=network()),
        "batch of 1": refused(on_devices("all"), Recipe(1, 1)),
    }
    if BACKEND == "tensorflow":
        results["draws"] = draws()
    else:
        for count in (1, "all"):
            results[f"dropout {count}"] = trained(count, dropout=0.3, recipe=WHOLE)
    return results


def as_process(folder: Path, address: str, number: int) -> dict:
    keras.distribution.initialize(address, 2, number)
    return {
        "all": in_two_calls(folder),
        "no scope": refused(contextlib.nullcontext()),
        "another run": refused(on_devices("all"), out=folder, seed=1),
    }


if __name__ == "__main__":
    kind, name, *others = sys.argv[1:]
    file = Path(name)
    if kind == "devices":
        found = on_virtual_devices(file.with_suffix(""))
    else:
        found = as_process(file.with_suffix(""), others[0], int(others[1]))
    file.write_text(json.dumps(found), encoding="utf-8")
