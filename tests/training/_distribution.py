"""Training on virtual devices, or as one of two JAX processes.

It is a process of its own, for the number of devices is fixed before the first tensor
is made. Arguments: `FILE`, and of one of several processes `HOST:PORT NUMBER`.
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


def network() -> keras.Model:
    """Batch normalization in a network in a layer; on JAX dropout, which is the same.

    No parameter has a gradient of zero in theory, whose rounding errors the optimizer
    would blow up to whole steps: so no bias before the normalization.
    """
    keras.utils.set_random_seed(0)
    image = keras.Input((12, 12, 1))
    x = GaussDerConv(4, 1.0, order=1, use_bias=False)(image)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))
    x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    channels = ScaleChannels(keras.Model(image, x), [0.5, 0.7])
    pooling = ScalePooling("average", dropout=0.3 if BACKEND == "jax" else 0.0)
    return keras.Model(image, pooling(channels(image)))


def trained(count, recipe=RECIPE, **options) -> dict:
    with on_devices(count):
        model = network()
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
    return {
        "one": trained(1, recipe=WHOLE, validation_data=VALIDATION),
        "all": in_two_calls(folder),
        "built elsewhere": refused(on_devices("all"), model=network()),
        "batch of 1": refused(on_devices("all"), Recipe(1, 1)),
    }


def as_process(folder: Path, address: str, number: int) -> dict:
    keras.distribution.initialize(address, DEVICES, number)
    return {
        "all": in_two_calls(folder),
        "no scope": refused(contextlib.nullcontext()),
        "another run": refused(on_devices("all"), out=folder, seed=1),
    }


if __name__ == "__main__":
    file, *others = sys.argv[1:]
    folder = Path(file).with_name("run")
    if others:
        found = as_process(folder, others[0], int(others[1]))
    else:
        found = on_virtual_devices(folder.with_name(f"run-{BACKEND}"))
    Path(file).write_text(json.dumps(found), encoding="utf-8")
