"""`train_in_stages`: from one scale channel to several, whenever it is interrupted."""

import dataclasses

import numpy as np
import pytest

from keras_gdrn.models import with_input_shape, with_sigma0
from keras_gdrn.training import Recipe, Stage, fit, train_in_stages
from tests.training._small import (
    IMAGES,
    LABELS,
    OneEpoch,
    StopAt,
    assert_same_weights,
    gauss_der_network,
    network,
)

pytestmark = [
    pytest.mark.usefixtures("step_by_step"),
    pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match"),
]
ARRAYS = IMAGES[:8], LABELS[:8]
ONE = Stage("one_channel", Recipe(2, 8), (1.0,))
TWO = Stage("two_channels", Recipe(2, 4, learning_rate=0.005), (0.7, 1.0))


def train(model, stages=(ONE, TWO), data=ARRAYS, **options):
    return train_in_stages(model, stages, data, verbose=0, **options)


def test_stages_go_on_from_the_one_before_with_their_channels_and_data(tmp_path):
    """Interrupted in any of them, the result is that of two calls of `fit`."""
    seen, whole = [], gauss_der_network()
    for stage in (ONE, TWO):
        fit(with_sigma0(whole, stage.sigma0), stage.recipe, ARRAYS, verbose=0)

    def after(stage, model, history):
        channels = model.get_layer("scale_channels")
        seen.append((stage.name, tuple(channels.sigma0), len(history.epoch)))

    for batch in (0, 1):  # which the first stage does not have
        with pytest.raises(KeyboardInterrupt):
            train(gauss_der_network(), out=tmp_path, callbacks=StopAt(1, batch))
    model = gauss_der_network(seed=1)  # the weights are those of the checkpoints
    options = {"data": lambda stage: seen.append(stage.name) or ARRAYS, "out": tmp_path}
    found = train(model, after_stage=after, **options)
    assert found is model  # which has the scale channels of the last stage
    assert_same_weights(found, whole)
    assert seen == [
        *("one_channel", ("one_channel", (1.0,), 2)),
        *("two_channels", ("two_channels", (0.7, 1.0), 2)),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {ONE.name, TWO.name}


def test_a_stage_may_have_images_of_another_size():
    padded = np.pad(IMAGES[:8], ((0, 0), (2, 2), (2, 2), (0, 0)))
    shape = padded.shape[1:]
    stages = ONE, dataclasses.replace(TWO, input_shape=shape)
    whole, model = gauss_der_network(), gauss_der_network()
    fit(with_sigma0(whole, ONE.sigma0), ONE.recipe, ARRAYS, verbose=0)
    larger = with_sigma0(with_input_shape(whole, shape), TWO.sigma0)
    fit(larger, TWO.recipe, (padded, LABELS[:8]), verbose=0)
    data = {None: ARRAYS, shape: (padded, LABELS[:8])}
    found = train(model, stages, lambda stage: data[stage.input_shape])
    assert found.input_shape[1:] == shape
    assert_same_weights(model, whole)


def test_a_callback_may_end_a_stage_of_any_model(tmp_path):
    epochs = []
    for _ in range(2):  # the second call finds both stages finished
        train(
            network(),
            [Stage("some", Recipe(3, 8)), Stage("more", Recipe(3, 8))],
            callbacks=OneEpoch(),
            out=tmp_path,
            after_stage=lambda stage, model, history: epochs.append(len(history.epoch)),
        )
    assert epochs == [1, 1, 1, 1]


def test_stages_are_refused():
    message = "`stages` must be one or more, with different .*Received: stages with"
    for stages in ([], [ONE, ONE]):
        with pytest.raises(ValueError, match=message):
            train(network(), stages)
