"""Training and evaluation in a process that refuses to import TensorFlow.

It is a process of its own, for the tests import TensorFlow. Argument: a folder.
"""

import sys
from pathlib import Path

from tests import without

without.block(*without.TENSORFLOW)

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_gdrn.data import rescaled_arrays  # noqa: E402
from keras_gdrn.evaluation import scale_selection_histogram  # noqa: E402
from keras_gdrn.models import gauss_der_resnet  # noqa: E402
from keras_gdrn.training import Augmentation, Recipe, fit, on_devices  # noqa: E402

RECIPE = Recipe(2, 16, augmentation=Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3))
TRAINING = rescaled_arrays("digits", "train", canvas=12, limit=40)
TESTS = {f: rescaled_arrays("digits", "test", f, canvas=12, limit=9) for f in (0.5, 1)}


class Interruption(keras.callbacks.Callback):
    """In the second epoch."""

    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) > 4:
            raise KeyboardInterrupt


def trained(seed: int = 0, **options) -> keras.Model:
    keras.utils.set_random_seed(seed)
    scales = {"sigma0": (0.5, 0.7), "scale_dropout": 0.3}
    model = gauss_der_resnet((12, 12, 1), 10, (4,), 1.4, **scales)
    weights = {"class_weight": {1: 2.0}, "verbose": 0}
    fit(model, RECIPE, TRAINING, validation_data=TESTS[1], **weights, **options)
    return model


def weights_of(devices: int) -> list[np.ndarray]:
    """What so many devices train, on batches that two can share out."""
    with on_devices(devices):
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Flatten(), keras.layers.Dense(10)]
        model = keras.Sequential([keras.Input((12, 12, 1)), *layers])
        data = tuple(part[:32] for part in TRAINING)
        fit(model, RECIPE, data, validation_data=TESTS[1], verbose=0)
    return model.get_weights()


def main(folder: Path) -> None:
    whole, is_interrupted = trained(), False
    try:
        trained(out=folder, callbacks=Interruption(), checkpoint_minutes=0)
    except KeyboardInterrupt:
        is_interrupted = True
    assert is_interrupted
    resumed = trained(seed=1, out=folder)
    for one, other in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    histogram = scale_selection_histogram(whole, TESTS)
    assert histogram.shares.shape == (2, 2)
    if keras.backend.backend() == "jax":
        for one, other in zip(weights_of(1), weights_of(2), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
    assert "tensorflow" not in sys.modules


if __name__ == "__main__":
    main(Path(sys.argv[1]))
