"""A small training, for tests and for the processes that they start."""

import keras
import numpy as np

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.training import Augmentation, Recipe

RECIPE = Recipe(
    epochs=3,
    batch_size=16,
    augmentation=Augmentation(padding=1, flip=0.5, brightness=0.2),
)
ARRAYS = IMAGES, LABELS = rescaled_arrays("digits", "train", canvas=12, limit=44)


def network(seed=0) -> keras.Model:
    """A plain network with all that keeps a state, for it is traced in no time."""
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            keras.layers.Conv2D(4, 3, strides=2),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )


class StopAt(keras.callbacks.Callback):
    """Ends training as an interruption would, after a batch of an epoch."""

    def __init__(self, epoch, batch):
        super().__init__()
        self.at = epoch, batch

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch

    def on_train_batch_end(self, batch, logs=None):
        if (self.now, batch) == self.at:
            raise KeyboardInterrupt


def assert_same_weights(one, other):
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
