"""Training on virtual devices.

It is a process of its own, for the number of devices is fixed before the first tensor
is made, and because other backends than TensorFlow do without it and Matplotlib here,
as if they were not installed.
"""

import dataclasses
import os
import sys
from pathlib import Path

from tests import without

BACKEND = os.environ["KERAS_BACKEND"]
if BACKEND != "tensorflow":
    without.block(*without.TENSORFLOW, "matplotlib")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
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
from tests._pages import code  # noqa: E402
from tests.training._small import ARRAYS, StopAt, gauss_der_network  # noqa: E402

DEVICES, COUNT = (1, 1) if BACKEND == "torch" else (2, "all")
TRAINING, VALIDATION = (tuple(part[:n] for part in ARRAYS) for n in (32, 29))
# Two devices cannot share 9 images: they are given 8.
RECIPE = Recipe(
    2, 9, augmentation=Augmentation(2, 0.5, 1.5, 0.2, 0.2, 0.2, 0.05, 1.5, 3)
)
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


def trained(count, recipe=RECIPE, **options) -> tuple[keras.Model, dict]:
    with on_devices(count):
        model = network()
        history = fit(model, recipe, TRAINING, **OPTIONS, **options).history
    history.pop("seconds")
    return model, history


def devices_of(model: keras.Model) -> int:
    value = model.weights[0].value
    if BACKEND == "jax":
        return len(value.sharding.device_set)
    if BACKEND == "torch":
        return 1
    return len(getattr(value, "values", [value]))


def train_on_all_devices(folder: Path) -> None:
    """As on one, although it is interrupted in the second epoch.

    The same but for the rounding of float32: where a gradient is small, AdamW turns it
    into steps of some 1e-5.
    """
    alone, expected = trained(1, RECIPE if DEVICES == 1 else WHOLE)
    options = {"callbacks": StopAt(1, 1), "checkpoint_minutes": 0}
    with pytest.raises(KeyboardInterrupt):
        trained(COUNT, out=folder, **options)
    model, found = trained(COUNT, out=folder)
    assert [devices_of(alone), devices_of(model)] == [1, DEVICES]
    assert len(found["val_loss"]) == 2
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5)
    weights, others = model.get_weights(), alone.get_weights()
    for weight, other in zip(weights, others, strict=True):
        np.testing.assert_allclose(weight, other, atol=3e-5)
    assert not np.allclose(weights[0], network().get_weights()[0], atol=1e-3)
    if DEVICES > 1:
        message = "`model` must be built"
        with on_devices("all"), pytest.raises(ValueError, match=message):
            fit(alone, RECIPE, TRAINING)


def train_in(policy: str) -> None:
    """As on one device, but for rounding, which differs."""
    keras.config.set_dtype_policy(policy)
    losses = [trained(*of)[1]["loss"] for of in ((1, WHOLE), (COUNT, RECIPE))]
    keras.config.set_dtype_policy("float32")
    np.testing.assert_allclose(*losses, rtol=2e-2)


def look_inside() -> None:
    """Evaluation and visualization do without TensorFlow and Matplotlib."""
    model, (x, y) = gauss_der_network(), (part[:4] for part in ARRAYS)
    assert scale_selection_histogram(model, {1: (x, y)}).shares.shape == (1, 2)
    assert activation_maps(model, x, y, [1.0]).shape == (4, 1, 12, 12)
    channel = model.get_layer("scale_channels").network
    assert effective_filters(channel.get_layer("head")).ndim == 4
    assert len(basis_kernels(1.0)) == 6


def by_the_page() -> None:
    """As docs/devices.md has it for JAX, by `model.fit`."""
    _, _, on_jax, *_ = code("docs/devices")
    small = on_jax.replace('("digits")', '("digits", widths=(4,), sigma0=(1.0, 2.0))')
    names = {"images": np.ones((8, 40, 40, 1)), "labels": np.arange(8)}
    exec(small.replace("=32", "=8"), names)
    assert devices_of(names["model"]) == DEVICES
    assert len(names["model"].history.epoch) == 1


if __name__ == "__main__":
    if BACKEND == "tensorflow":
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(DEVICES)]
        tf.config.set_logical_device_configuration(cpu, parts)
    else:
        look_inside()
    train_on_all_devices(Path(sys.argv[1]))
    if DEVICES > 1:
        train_in("mixed_bfloat16")
    if BACKEND == "tensorflow":
        train_in("mixed_float16")  # whose optimizer scales the loss
    if BACKEND == "jax":
        by_the_page()
    unwanted = {"tensorflow", "keras_tuner", "matplotlib"} & sys.modules.keys()
    assert BACKEND == "tensorflow" or not unwanted
