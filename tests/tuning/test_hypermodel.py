"""Trials of the hypermodel: what they train, what they return, what they refuse."""

import dataclasses

import keras
import keras_tuner
import numpy as np
import pytest

from keras_gdrn.training import Recipe
from keras_gdrn.tuning import (
    GaussDerResNetHyperModel,
    SearchSpace,
    multiply_adds,
    parameters,
)

# Keras Tuner still asks for threads by their old name.
pytestmark = pytest.mark.filterwarnings(
    "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
)

TINY = SearchSpace(
    ratio=(1.2, 1.5),
    blocks=(1, 2),
    stem_width=(2,),
    width=(2, 3),
    order=(2,),
    sigma0_spacing=(2.0,),
    sigma0_range=(0.5, 1.0),
    batch_size=(8,),
)
FIXED = dataclasses.replace(TINY, ratio=(1.5,), blocks=(1,), width=(3,))


def hypermodel_of(space=TINY, epochs=1, **options):
    return GaussDerResNetHyperModel(
        (12, 12, 1), 3, space=space, recipe=Recipe(epochs, 8), **options
    )


def built(hypermodel):
    hp = keras_tuner.HyperParameters()
    return hp, hypermodel.build(hp)


class Epochs(keras.callbacks.Callback):
    """Notes the number of scale channels and the learning rate of each epoch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_epoch_begin(self, epoch, logs=None):
        scales = len(self.model.get_layer("scale_channels").sigma0)
        self.found.append((scales, round(float(self.model.optimizer.learning_rate), 5)))


@pytest.mark.slow
def test_trials_that_go_on_from_other_trials(tiny_images, tmp_path):
    hypermodel = hypermodel_of(TINY.only("ratio", "blocks"), single_scale_epochs=1)
    search = keras_tuner.Hyperband(
        *(hypermodel, "val_accuracy"),
        max_epochs=2,
        factor=2,
        directory=tmp_path,
        seed=1,
    )
    search.search(*tiny_images, validation_data=tiny_images, verbose=0)
    trials = search.oracle.trials.values()
    assert any("tuner/trial_id" in trial.hyperparameters.values for trial in trials)
    assert all(trial.status == "COMPLETED" for trial in trials)
    assert {"width_1", "width_2"} <= {hp.name for hp in search.oracle.get_space().space}


@pytest.mark.slow
def test_best_model_is_the_one_that_was_judged(tiny_images, tmp_path):
    hypermodel = hypermodel_of(single_scale_epochs=1)
    objective = keras_tuner.Objective("val_mean_accuracy", "max")
    search = keras_tuner.RandomSearch(
        hypermodel, objective, max_trials=2, directory=tmp_path, seed=1
    )
    images, labels = tiny_images
    tests = {1.0: (images, labels), 2.0: (images[::-1].copy(), labels)}
    search.search(tiny_images, validation_data=tests, verbose=0)
    (trial,) = search.oracle.get_best_trials(1)
    (model,) = search.get_best_models(1)
    accuracies = [
        np.mean(np.argmax(model.predict(x, verbose=0), axis=-1) == y)
        for x, y in tests.values()
    ]
    found = {name: trial.metrics.get_last_value(name) for name in trial.metrics.metrics}
    assert trial.score == pytest.approx(np.mean(accuracies))
    assert found["val_min_accuracy"] == pytest.approx(min(accuracies))
    assert found["val_accuracy"] == pytest.approx(accuracies[0])
    assert found["parameters"] == parameters(model)
    assert found["multiply_adds"] == multiply_adds(model)
    assert found["over_budget"] == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(2, 0.01)]),
        ({"epochs": 3}, [(1, 0.01), (1, 0.005), (2, 0.005)]),
        ({"epochs": 3, "initial_epoch": 1}, [(1, 0.01), (2, 0.005)]),
    ],
)
def test_one_scale_channel_comes_first(options, expected, tiny_images):
    single = 2 if options else 0
    hypermodel = hypermodel_of(FIXED, single_scale_epochs=single)
    hp, model = built(hypermodel)
    epochs = Epochs()
    hypermodel.fit(
        hp,
        model,
        tiny_images,
        validation_data=tiny_images,
        callbacks=[epochs],
        verbose=0,
        **options,
    )
    for (scales, rate), (want_scales, want_rate) in zip(
        epochs.found, expected, strict=True
    ):
        assert scales == want_scales
        assert rate == pytest.approx(want_rate, rel=2e-3)


def test_warm_up_keeps_its_share():
    recipe = Recipe(20, 8, warmup_epochs=5)
    hypermodel = GaussDerResNetHyperModel((12, 12, 1), 3, space=TINY, recipe=recipe)
    hp = keras_tuner.HyperParameters()
    warmups = [hypermodel.recipe(hp, epochs).warmup_epochs for epochs in (20, 4, 1)]
    assert warmups == [5, 1, 0]


@pytest.mark.parametrize("name", ["parameters", "multiply_adds"])
def test_networks_over_the_budget_do_not_stop_a_search(
    name, tiny_images, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(keras.Model, "fit", lambda *_, **__: pytest.fail("trained"))
    space = dataclasses.replace(FIXED, stem_width=(2, 3, 4, 5)).only("stem_width")
    hypermodel = hypermodel_of(space, **{f"max_{name}": 10})
    search = keras_tuner.GridSearch(hypermodel, "val_accuracy", directory=tmp_path)
    search.search(tiny_images, validation_data=tiny_images, verbose=0)
    assert f"is over the budget, {{'{name}': 10}}" in capsys.readouterr().out
    trials = search.oracle.trials.values()
    found = [(t.score, t.metrics.get_last_value("over_budget")) for t in trials]
    assert found == [(0, 1)] * 4
    search.get_best_models(1)  # there is a checkpoint


def test_scale_channels_beyond_the_image_are_left_out():
    space = dataclasses.replace(FIXED, sigma0_range=(2.0, 8.0))
    _, model = built(hypermodel_of(space))
    assert list(model.get_layer("scale_channels").sigma0) == [2.0, 4.0]  # 1.5² · 4 = 9


def test_unfit_data_that_come_up_later_end_a_search(tiny_images, tmp_path):
    tf = pytest.importorskip("tensorflow")
    images, labels = tiny_images
    data = tf.data.Dataset.from_tensor_slices((images, labels + labels // 2)).batch(8)
    search = keras_tuner.RandomSearch(
        hypermodel_of(FIXED), "val_accuracy", max_trials=2, directory=tmp_path
    )
    with pytest.raises(keras_tuner.errors.FatalValueError, match="number the 3 class"):
        search.search(data, validation_data=tiny_images, verbose=0)


def test_a_network_that_diverges_does_not_end_a_search(tiny_images, tmp_path):
    class Diverge(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            weights = self.model.get_weights()
            self.model.set_weights([np.nan * weight for weight in weights])

    search = keras_tuner.RandomSearch(
        hypermodel_of(TINY), "val_accuracy", max_trials=2, directory=tmp_path
    )
    options = {"validation_data": tiny_images, "callbacks": [Diverge()], "verbose": 0}
    search.search(*tiny_images, **options)
    assert len(search.oracle.trials) == 2


class Interrupted(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def test_an_interrupted_trial_goes_on_from_its_checkpoint(tiny_images, tmp_path):
    hypermodel = hypermodel_of(FIXED, epochs=3)

    def run(name, *callbacks):
        keras.utils.set_random_seed(1)
        hp, model = built(hypermodel)
        options = {"validation_data": tiny_images, "out": tmp_path / name, "verbose": 0}
        found = hypermodel.fit(hp, model, tiny_images, callbacks=callbacks, **options)
        return found, model.get_weights()

    kept, of_all = Epochs(), Epochs()
    result, weights = run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("parts", Interrupted())
    after, weights_after = run("parts", of_all)
    assert len(of_all.found) == 1
    assert after == result
    for one, other in zip(weights, weights_after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    # Killed after its training, it is judged and kept without any.
    again, weights_again = run("parts", kept)
    assert again == result
    assert (
        len(kept.found) == 1
    )  # of the callbacks, which write Keras Tuner's checkpoint
    for one, other in zip(weights_after, weights_again, strict=True):
        np.testing.assert_array_equal(one, other)
