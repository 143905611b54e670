"""Training on virtual devices; what was found is written to a file.

It is a process of its own, for the number of devices is fixed before the first tensor
is made, and because other backends than TensorFlow do without it and Matplotlib here,
as if they were not installed.
"""

import contextlib
import dataclasses
import json
import os
import sys
from pathlib import Path

from tests import without

BACKEND = os.environ["KERAS_BACKEND"]
if BACKEND != "tensorflow":
    without.block(*without.TENSORFLOW, "matplotlib")

import keras  # noqa: E402
from keras import layers  # noqa: E402

import keras_gdrn  # noqa: E402, F401

assert "keras_gdrn.training" not in sys.modules  # what is not asked for

from keras_gdrn.evaluation import scale_selection_histogram  # noqa: E402
from keras_gdrn.layers import GaussDerConv, ScaleChannels, ScalePooling  # noqa: E402
from keras_gdrn.training import Augmentation, Recipe, fit, on_devices  # noqa: E402
from keras_gdrn.visualization import (  # noqa: E402
    activation_maps,
    basis_kernels,
    effective_filters,
)
from tests.training._small import ARRAYS, StopAt, gauss_der_network  # noqa: E402

DEVICES = 2
COUNT = 1 if BACKEND == "torch" else "all"
TRAINING, VALIDATION = (tuple(part[:n] for part in ARRAYS) for n in (32, 29))
# Two devices cannot share 9 images: they are given 8.
RECIPE = Recipe(2, 9, augmentation=Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3))
WHOLE = dataclasses.replace(RECIPE, batch_size=8)
OPTIONS = {
    "validation_data": VALIDATION,
    "class_weight": {n: 1.0 + n % 2 for n in range(10)},
    "verbose": 0,
}


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
        history = fit(model, recipe, TRAINING, **OPTIONS, **options).history
    history.pop("seconds")
    weights = [weight.tolist() for weight in model.get_weights()]
    return {"history": history, "weights": weights, "devices": devices_of(model)}


def in_two_calls(folder: Path) -> dict:
    """What is trained on all devices, with an interruption in the second epoch."""
    with contextlib.suppress(KeyboardInterrupt):
        trained(COUNT, callbacks=StopAt(1, 1), checkpoint_minutes=0, out=folder)
        raise AssertionError("not interrupted")
    return trained(COUNT, out=folder)


def devices_of(model: keras.Model) -> int:
    value = model.weights[0].value
    if BACKEND == "jax":
        return len(value.sharding.device_set)
    return len(getattr(value, "values", [value]))


def look_inside() -> None:
    """Evaluation and visualization do without TensorFlow and Matplotlib."""
    model, (x, y) = gauss_der_network(), (part[:4] for part in ARRAYS)
    assert scale_selection_histogram(model, {1: (x, y)}).shares.shape == (1, 2)
    assert activation_maps(model, x, y, [1.0]).shape == (4, 1, 12, 12)
    channel = model.get_layer("scale_channels").network
    assert effective_filters(channel.get_layer("head")).ndim == 4
    assert len(basis_kernels(1.0)) == 6


def refused(model: keras.Model) -> str:
    """The error that training on all devices ends with."""
    try:
        with on_devices("all"):
            fit(model, RECIPE, TRAINING, verbose=0)
    except ValueError as error:
        return str(error)
    return "none"


def on_virtual_devices(folder: Path) -> dict:
    if BACKEND == "tensorflow":
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(DEVICES)]
        tf.config.set_logical_device_configuration(cpu, parts)
    else:
        look_inside()
    return {
        "one": trained(1, recipe=RECIPE if COUNT == 1 else WHOLE),
        "all": in_two_calls(folder),
        "built elsewhere": refused(network()),
    }


if __name__ == "__main__":
    file = Path(sys.argv[1])
    found = on_virtual_devices(file.with_name(f"run-{BACKEND}"))
    unwanted = {"tensorflow", "keras_tuner", "matplotlib"} & sys.modules.keys()
    assert BACKEND == "tensorflow" or not unwanted
    file.write_text(json.dumps(found), encoding="utf-8")
