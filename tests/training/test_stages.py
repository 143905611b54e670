"""`train_in_stages`: from one scale channel to several, whenever it is interrupted."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.layers import GaussDerConv, ScaleChannels, ScalePooling
from keras_gdrn.models import with_sigma0
from keras_gdrn.training import OutOfTime, Recipe, Stage, fit, train_in_stages

pytestmark = [
    pytest.mark.filterwarnings("ignore:Even though the .*run_functions_eagerly"),
    pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match"),
]


@pytest.fixture(autouse=True, scope="module")
def eagerly():
    """Without tracing, which takes longer than these few steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


_RANDOM = np.random.default_rng(0)
ARRAYS = _RANDOM.random((8, 8, 8, 1), "float32"), _RANDOM.integers(3, size=8)
ONE = Stage("one_channel", Recipe(2, 8), (1.0,))
TWO = Stage("two_channels", Recipe(2, 4, learning_rate=0.005), (0.7, 1.4))


def network(seed=0) -> keras.Model:
    """The smallest one with scale channels."""
    keras.utils.set_random_seed(seed)
    image = keras.Input((8, 8, 1))
    x = GaussDerConv(2, 1.0)(image)
    x = keras.layers.Dense(3)(keras.layers.GlobalAveragePooling2D()(x))
    channels = ScaleChannels(keras.Model(image, x), TWO.sigma0)
    return keras.Model(image, ScalePooling("average", dropout=0.3)(channels(image)))


def train(model, stages=(ONE, TWO), data=ARRAYS, **options):
    return train_in_stages(model, stages, data, verbose=0, **options)


def assert_same_weights(one, other):
    for found, expected in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def whole():
    """What two calls of `fit` train, the second one from the weights of the first."""
    model = network()
    for stage in (ONE, TWO):
        fit(with_sigma0(model, stage.sigma0), stage.recipe, ARRAYS, verbose=0)
    return model


def test_stages_go_on_from_the_one_before_with_their_channels_and_data(whole):
    seen = []

    def data(stage):
        seen.append(stage.name)
        return ARRAYS

    def after(stage, model, history):
        (layer,) = (x for x in model.layers if isinstance(x, ScaleChannels))
        seen.append((stage.name, tuple(layer.sigma0), len(history.epoch)))

    model = network()
    found = train(model, data=data, after_stage=after)
    assert_same_weights(found, whole)
    assert found is model  # which has the scale channels of the last stage
    assert seen == [
        *("one_channel", ("one_channel", (1.0,), 2)),
        *("two_channels", ("two_channels", (0.7, 1.4), 2)),
    ]
    with pytest.raises(AssertionError):
        assert_same_weights(network(), whole)


class StopAt(keras.callbacks.Callback):
    """Interrupts at the beginning of the n-th epoch of a call."""

    def __init__(self, epoch):
        super().__init__()
        self.left = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1


@pytest.mark.parametrize("epochs", [1, 3])
def test_interrupted_at_any_epoch_the_result_is_the_same(epochs, whole, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(network(), out=tmp_path, callbacks=[StopAt(epochs)])
    resumed = network(seed=1)  # the weights are those of the checkpoints
    train(resumed, out=tmp_path)
    assert_same_weights(resumed, whole)
    assert {path.name for path in tmp_path.iterdir()} == {ONE.name, TWO.name}


def test_time_is_limited_over_all_stages(tmp_path):
    for ended in ("one_channel: 1 ", "two_channels: not", "two_channels: 1 "):
        with pytest.raises(OutOfTime, match=ended):
            train(network(), out=tmp_path, max_minutes=0)
    train(network(), out=tmp_path, max_minutes=0)


class StopTraining(keras.callbacks.Callback):
    """Ends a training after its first epoch, as `EarlyStopping` may."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


def test_a_callback_may_end_a_stage_of_any_model():
    layers = [keras.layers.Flatten(), keras.layers.Dense(3)]
    model, epochs = keras.Sequential([keras.Input((8, 8, 1)), *layers]), []
    found = train(
        model,
        [Stage("some", Recipe(2, 8)), Stage("more", Recipe(2, 8))],
        callbacks=[StopTraining()],
        after_stage=lambda stage, model, history: epochs.append(len(history.epoch)),
    )
    assert found is model
    assert epochs == [1, 1]


@pytest.mark.parametrize("stages", [[], [ONE, ONE]])
def test_stages_are_refused(stages):
    with pytest.raises(
        ValueError, match="`stages` must be one or more, each with a name"
    ):
        train(network(), stages)
