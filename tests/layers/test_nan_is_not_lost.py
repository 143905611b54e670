"""NaN stays NaN behind every ReLU, also where oneDNN would merge it into its layer."""

import os
import subprocess
import sys

import keras
import pytest

from tests._commands import ROOT

# oneDNN is on by default on newer CPUs only, and can be switched when TensorFlow loads.
SCRIPT = """
import keras, numpy as np, tensorflow as tf
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock, ScaleChannels
from keras_gdrn.layers import SpatialSelection
from keras_gdrn.layers._batch_normalization import batch_normalization
from keras_gdrn.models import Preprocess, scale_channel, with_preprocess
from keras_gdrn.models import gauss_der_resnet

SHAPE = (16, 16, 3)
nan = np.full((4, *SHAPE), np.nan, "float32")

def lost(make, training):
    network = keras.Sequential([keras.Input(SHAPE), *make()])
    scores = tf.function(lambda x: network(x, training=training))
    return not np.isnan(scores(tf.constant(nan))).all()

def layers(activation):
    relu = lambda: keras.layers.Activation(activation)
    conv = lambda sigma=1.0, **options: GaussDerConv(4, sigma, **options)
    return {
        "fine": lambda: [conv(activation=activation)],
        "fine, ReLU behind it": lambda: [conv(), relu()],
        "coarse": lambda: [conv(4.0, activation=activation)],
        "separable": lambda: [conv(separable=True, activation=activation)],
        "learned": lambda: [conv(trainable_sigma=True, activation=activation)],
        "block": lambda: [GaussDerResidualBlock(4, 1.0, activation=activation)],
        "normalized": lambda: [conv(use_bias=False), batch_normalization(), relu()],
        "1x1": lambda: [keras.layers.Conv2D(4, 1), batch_normalization(), relu()],
    }

# In training only normalization is another; both ReLUs are behind the same operations.
for activation, training, names in (
    ("relu", False, layers("relu")),
    ("relu", True, ("block", "normalized", "1x1")),
    ("relu6", False, ("fine", "coarse", "normalized")),
):
    for name in names:
        if lost(layers(activation)[name], training):
            print("LOST", activation, name, training)

def fit(**options):
    network = gauss_der_resnet(SHAPE, 2, [4, 6], 1.3, [0.8, 1.6], **options)
    model = with_preprocess(network, Preprocess())
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    x = np.random.default_rng(0).standard_normal((32, *SHAPE)).astype("float32")
    stop = keras.callbacks.TerminateOnNaN()
    history = model.fit(x, np.arange(32) % 2, epochs=2, verbose=0, callbacks=[stop])
    if not (np.isnan(history.history["loss"]).all() and len(history.epoch) == 1):
        print("LOST in training", options, history.history)

for options in {}, {"residual": False, "spatial_selection": "max"}, {"density": None}:
    fit(**options)
print("all tried")
"""


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its own library")
def test_nan_is_not_lost_with_onednn():
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1:] == ["all tried"]
    assert "LOST" not in done.stdout, done.stdout
