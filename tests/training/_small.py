"""A small training, for tests and for the processes that they start."""

import keras
import numpy as np

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.training import Augmentation, Recipe

RECIPE = Recipe(3, 16, augmentation=Augmentation(1, flip=0.5, brightness=0.2))
ARRAYS = IMAGES, LABELS = rescaled_arrays("digits", "train", canvas=12, limit=44)


def network(seed=0, rate=0.3, **options) -> keras.Model:
    """A plain network with all that keeps a state, for it is traced in no time."""
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            keras.layers.Conv2D(4, 3, strides=2, **options),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(rate),
            keras.layers.Flatten(),
            keras.layers.Dense(10, dtype="float32"),
        ]
    )


def gauss_der_network(seed=0, sigma0=(0.7, 1.0), **options) -> keras.Model:
    keras.utils.set_random_seed(seed)
    options = {"ratio": 1.4, "scale_dropout": 0.3, **options}
    return gauss_der_resnet((12, 12, 1), 10, (4,), sigma0=sigma0, **options)


def batch(number) -> tuple[np.ndarray, ...]:
    return tuple(part[16 * number : 16 * number + 16] for part in ARRAYS)


class Loader:
    """An iterable with a length, such as PyTorch's `DataLoader`."""

    def __init__(self, length=3):
        self.length = length

    def __len__(self):
        return self.length

    def __iter__(self):
        return map(batch, range(3))


class Sequence(keras.utils.PyDataset):
    """The same batches, by number."""

    def __len__(self):
        return 3

    def __getitem__(self, number):
        return batch(number)


class OneEpoch(keras.callbacks.Callback):
    """Ends a training after one epoch of a call, as `EarlyStopping` may."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


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
