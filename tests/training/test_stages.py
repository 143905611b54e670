"""`train_in_stages`: from one scale channel to several, whenever it is interrupted."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models import gauss_der_resnet, with_sigma0
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
ARRAYS = _RANDOM.random((12, 10, 10, 1), "float32"), _RANDOM.integers(3, size=12)
ONE = Stage("one_channel", Recipe(2, 6), (1.0,))
TWO = Stage("two_channels", Recipe(2, 4, learning_rate=0.005), (0.7, 1.4))


def network(seed=0, **options):
    keras.utils.set_random_seed(seed)
    options = {"scale_dropout": 0.3, **options}
    return gauss_der_resnet((10, 10, 1), 3, [3], 1.3, TWO.sigma0, **options)


def train(model, **options):
    return train_in_stages(model, [ONE, TWO], ARRAYS, verbose=0, **options)


def weights(model):
    return [np.asarray(weight) for weight in model.get_weights()]


def assert_same_weights(one, other):
    for found, expected in zip(weights(one), weights(other), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def whole():
    """What two calls of `fit` train, the second one from the weights of the first."""
    model = network()
    for stage in (ONE, TWO):
        at_scales = with_sigma0(model, stage.sigma0)
        fit(at_scales, stage.recipe, ARRAYS, verbose=0)
    return model


def test_each_stage_goes_on_from_the_one_before(whole):
    model = network()
    found = train(model)
    assert_same_weights(found, whole)
    assert found is model  # which has the scale channels of the last stage


def test_stages_have_their_scale_channels_and_data():
    seen = []

    def data(stage):
        seen.append(stage.name)
        return ARRAYS

    def after(stage, model, history):
        (layer,) = (x for x in model.layers if isinstance(x, ScaleChannels))
        seen.append((stage.name, tuple(layer.sigma0), len(history.epoch)))

    model = network()
    train_in_stages(model, [ONE, TWO], data, after_stage=after, verbose=0)
    assert seen == [
        *("one_channel", ("one_channel", (1.0,), 2)),
        *("two_channels", ("two_channels", (0.7, 1.4), 2)),
    ]


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


def epochs_in(folder):
    """How many epochs of each stage have been trained."""
    logs = [folder / stage.name / "log.csv" for stage in (ONE, TWO)]
    lines = [log.read_text().splitlines() if log.exists() else [""] for log in logs]
    return [len(of_log) - 1 for of_log in lines]


def test_time_is_limited_over_all_stages(tmp_path):
    for epochs in ([1, 0], [2, 0], [2, 1]):
        with pytest.raises(OutOfTime):
            train(network(), out=tmp_path, max_minutes=0)
        assert epochs_in(tmp_path) == epochs
    train(network(), out=tmp_path, max_minutes=0)
    assert epochs_in(tmp_path) == [2, 2]


class StopTraining(keras.callbacks.Callback):
    """Ends a training after its first epoch, as `EarlyStopping` may."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


def test_a_callback_may_end_a_stage():
    epochs = []
    train(
        network(),
        callbacks=[StopTraining()],
        after_stage=lambda stage, model, history: epochs.append(len(history.epoch)),
    )
    assert epochs == [1, 1]


def test_a_subclass_stays_one():
    class Own(ScaleChannels):
        pass

    image = keras.Input((10, 10, 1))
    channel = network().layers[1].network
    model = keras.Model(image, keras.layers.Flatten()(Own(channel, [1.0, 2.0])(image)))
    (layer,) = (x for x in with_sigma0(model, [1.0, 3.0]).layers if type(x) is Own)
    assert tuple(layer.sigma0) == (1.0, 3.0)


def test_any_model_without_scales():
    model = keras.Sequential(
        [keras.Input((10, 10, 1)), keras.layers.Flatten(), keras.layers.Dense(3)]
    )
    stage = Stage("training", Recipe(1, 6))
    assert train_in_stages(model, [stage], ARRAYS, verbose=0) is model


@pytest.mark.parametrize("stages", [[], [ONE, ONE]])
def test_stages_are_refused(stages):
    with pytest.raises(
        ValueError, match="`stages` must be one or more, each with a name"
    ):
        train_in_stages(network(), stages, ARRAYS)
