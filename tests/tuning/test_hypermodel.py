"""Trials of the hypermodel: what they train on, what they return, what they refuse."""

import dataclasses
from unittest import mock

import keras
import keras_tuner
import numpy as np
import pytest
from keras.callbacks import LambdaCallback
from keras_tuner.errors import FatalError

from keras_gdrn.evaluation import ScaleGeneralization
from keras_gdrn.models import count_parameters
from keras_gdrn.training import Recipe
from keras_gdrn.tuning import GaussDerResNetHyperModel, _hypermodel
from tests.tuning._tiny import TINY

FIXED = dataclasses.replace(TINY, ratio=(1.5,), width=(3,)).only()
X, Y = np.zeros((24, 12, 12, 1), "float32"), np.arange(24) % 3
HALF = {"validation_split": 0.5}


def hypermodel_of(space=FIXED, recipe=Recipe(1, 8), **options):
    return GaussDerResNetHyperModel(
        (12, 12, 1), 3, space=space, recipe=recipe, **options
    )


def built(hypermodel):
    hp = keras_tuner.HyperParameters()
    return hp, hypermodel.build(hp)


@pytest.mark.slow
def test_trials_go_on_from_others_and_the_best_model_is_the_one_that_was_judged(
    tiny_images, tmp_path
):
    search = keras_tuner.Hyperband(
        hypermodel_of(TINY.only("width"), single_scale_epochs=1),
        *(keras_tuner.Objective("val_mean_accuracy", "max"), 2),
        factor=2,
        directory=tmp_path,
        seed=1,
    )
    search.oracle.max_trials = 3  # two of an epoch, and one that goes on
    images, labels = tiny_images
    tests = {1.0: (images, labels), 2.0: (images[::-1].copy(), labels)}
    search.search(tiny_images, validation_data=tests, verbose=0)
    *_, last = search.oracle.trials.values()
    assert "tuner/trial_id" in last.hyperparameters.values
    (trial,) = search.oracle.get_best_trials(1)
    (model,) = search.get_best_models(1)
    accuracies = [
        np.mean(np.argmax(model.predict(x, verbose=0), axis=-1) == y)
        for x, y in tests.values()
    ]
    found = {name: trial.metrics.get_last_value(name) for name in trial.metrics.metrics}
    assert found == {
        "val_mean_accuracy": pytest.approx(np.mean(accuracies)),
        "val_min_accuracy": pytest.approx(min(accuracies)),
        "val_accuracy": pytest.approx(accuracies[0]),
        "parameters": count_parameters(model),
    }


def test_scale_channels_beyond_the_image_are_left_out():
    space = dataclasses.replace(FIXED, sigma0_range=(2.0, 8.0))
    _, model = built(hypermodel_of(space))
    assert list(model.get_layer("scale_channels").sigma0) == [2.0, 4.0]  # 1.5² · 4 = 9


@pytest.mark.parametrize(
    ("epochs", "kind", "message"),
    [(1, ValueError, "must be finite"), (2, FloatingPointError, "loss")],
)
def test_a_network_that_diverges_does_not_end_a_search(
    epochs, kind, message, tiny_images
):
    hypermodel = hypermodel_of(recipe=Recipe(epochs, 8))
    hp, model = built(hypermodel)

    def spoil(epoch, logs):
        model.set_weights([np.nan * weight for weight in model.get_weights()])

    options = {"callbacks": [LambdaCallback(on_epoch_end=spoil)], "verbose": 0}
    with pytest.raises(kind, match=message) as error:
        hypermodel.fit(hp, model, *tiny_images, **HALF, **options)
    assert not isinstance(error.value, FatalError)


def test_an_interrupted_trial_goes_on_from_its_checkpoint(tiny_images, tmp_path):
    hypermodel = hypermodel_of(recipe=Recipe(2, 8))

    def run(name, error=None):
        keras.utils.set_random_seed(1)
        hp, model = built(hypermodel)
        after_epoch, out = mock.Mock(side_effect=error), tmp_path / name
        named = {"out": out, "callbacks": [LambdaCallback(on_epoch_end=after_epoch)]}
        found = hypermodel.fit(hp, model, *tiny_images, verbose=0, **HALF, **named)
        return found, model.get_weights(), after_epoch.call_count

    result, weights, count = run("whole")
    assert count == 2
    with pytest.raises(KeyboardInterrupt):
        run("parts", KeyboardInterrupt)
    for _ in range(2):
        # Killed after its training, it is judged without any, and its callbacks, one
        # of which writes Keras Tuner's checkpoint, are called once.
        after, weights_after, count = run("parts")
        assert count == 1
        assert after == result
        for one, other in zip(weights, weights_after, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.fixture
def given(monkeypatch):
    """What the training and the test are given by `GaussDerResNetHyperModel.fit`."""
    half_right = ScaleGeneralization(np.array([1.0]), np.array([0.5]))
    train, test = mock.Mock(), mock.Mock(return_value=half_right)
    monkeypatch.setattr(_hypermodel, "train_in_stages", train)
    monkeypatch.setattr(_hypermodel, "scale_generalization", test)

    def fit(*args, recipe=Recipe(1, 8), single_scale_epochs=0, **named):
        of = hypermodel_of(recipe=recipe, single_scale_epochs=single_scale_epochs)
        assert of.fit(*built(of), *args, **named)["val_accuracy"] == 0.5
        _, stages, data = train.call_args.args
        own, (_, tests) = train.call_args.kwargs, test.call_args.args
        return {**own, "stages": stages, "data": data, "tests": tests}

    return fit


@pytest.mark.parametrize(
    ("single", "first", "last", "expected"),
    [
        (0, 0, None, [(None, 8, 0.01, 2)]),
        (2, 0, 3, [((1.0,), 2, 0.01, 1), (None, 1, 0.005, 0)]),
        (2, 1, 3, [((1.0,), 1, 0.01, 0), (None, 1, 0.005, 0)]),
        (9, 0, None, [((1.0,), 8, 0.01, 2)]),
    ],
)
def test_stages(single, first, last, expected, given, tiny_images):
    """One scale channel comes first; the warm-up keeps its share."""
    named = {"recipe": Recipe(8, 8, warmup_epochs=2), "single_scale_epochs": single}
    named |= {"initial_epoch": first, "epochs": last}
    found = given(*tiny_images, **HALF, **named)["stages"]
    names = "epochs", "learning_rate", "warmup_epochs"
    of = [(s.sigma0, *(getattr(s.recipe, name) for name in names)) for s in found]
    assert of == expected


def test_data(given, tiny_images):
    x, y = tiny_images
    for arguments, named in (((x, y), {}), ((), {"x": x, "y": y}), (((x, y),), {})):
        found = given(*arguments, **named, validation_data=(x[:5], y[:5]))
        np.testing.assert_equal(found["data"], (x, y))
        np.testing.assert_equal(found["tests"][1.0], (x[:5], y[:5]))
        found = given(*arguments, **named, validation_split=0.2)
        np.testing.assert_equal(found["data"], (x[:6], y[:6]))  # as Keras: 6.4 of 8
        np.testing.assert_equal(found["tests"][1.0], (x[6:], y[6:]))
    tests = {1.0: tiny_images, 2.0: tiny_images}
    own = {"class_weight": {0: 2.0}, "seed": 4, "out": "folder"}
    found = given(given, validation_data=tests, **own)
    assert found["data"] is given  # a function, of a stage
    assert found["tests"] is tests
    assert own.items() <= found.items()


JUDGES = {"validation_data": (X[:3], Y[:3])}


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ((X, Y), {}, "`validation_data` or `valid.*=0.0 of 24 .* no valid"),
        ((X, Y), {"validation_split": 1.5}, "Either .*=1.5 of 24 images"),
        ((X, Y), {"validation_split": 0.99}, "images to train.*=0.99"),
        ((X, Y), JUDGES | HALF, "and also validation_d"),
        ((print,), HALF, "of arrays.* of a builtin"),
        ((X[:3], Y[:2]), HALF, "as many labels as image"),
        ((X, Y), {"validation_data": (X[:, :8], Y)}, "24, 8, 12, 1"),
        ((X, Y), {"validation_data": {2.0: (X + 255, Y)}}, "factor 2"),
        ((X, Y + 1), JUDGES, r"the 3 classes .*\[3"),
        ((print, Y), JUDGES, "`data` must be a tuple of arrays"),
        ((X, Y), JUDGES | {"batch_size": 0}, "`batch_size` must be"),
    ],
)
def test_what_does_not_fit(data, options, message):
    """It is no failure of a trial, after which the search would go on."""
    hypermodel = hypermodel_of()
    with pytest.raises(FatalError, match=message):
        hypermodel.fit(*built(hypermodel), *data, verbose=0, **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_shape": (32, 32)}, r"\(height, width, channels\).*=\(32, 32\)"),
        ({"input_shape": (None, 8, 1)}, r"\(height, width, ch.*=\(None, 8, 1\)"),
        ({"input_shape": (0, 8, 1)}, r"must be the shape.*=\(0, 8, 1\)"),
        ({"classes": ["a"]}, r"`classes` must be an integer.*\['a'\]"),
        ({"recipe": 5}, "`recipe` must be a `Recipe`.*=5"),
        ({"sigma0": [1.0]}, r"`sigma0` is set by `GaussDer.*=\[1.0\]"),
        ({"epsilom": 4}, "no argument `epsilom`. Did you mean `epsilon`"),
    ],
)
def test_arguments_are_checked_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussDerResNetHyperModel(
            **{"input_shape": (8, 8, 1), "classes": 3, **arguments}
        )


def test_a_search_takes_what_keras_tuner_passes_on(tiny_images, tmp_path):
    """A size of batches, no callbacks, and one that watches the validation."""
    hypermodel = hypermodel_of(recipe=Recipe(3, 8))
    hp, model = built(hypermodel)
    sizes = []
    model_fit, model.fit = (
        model.fit,
        lambda data, **options: (
            sizes.append(next(iter(data))[0].shape[0]),
            model_fit(data, **options),
        ),
    )
    options = {**HALF, "verbose": 0, "batch_size": 4}
    hypermodel.fit(hp, model, *tiny_images, callbacks=None, **options)
    assert sizes == [4]
    hp, model = built(hypermodel)
    stop = keras.callbacks.EarlyStopping("val_accuracy", patience=0, min_delta=2.0)
    hypermodel.fit(hp, model, *tiny_images, callbacks=[stop], **options)
    assert stop.stopped_epoch > 0


@pytest.mark.parametrize("name", ["val_acc", "val_loss"])
def test_an_objective_that_no_trial_has_ends_the_search_at_once(
    tiny_images, tmp_path, name
):
    objective = keras_tuner.Objective(name, "max")
    tuner = keras_tuner.RandomSearch(hypermodel_of(), objective, directory=tmp_path)
    with (
        mock.patch.object(keras.Model, "fit", side_effect=AssertionError),
        pytest.raises(
            FatalError,
            match=rf"`objective` must be one of .*Received: objective='{name}'",
        ),
    ):
        tuner.search(*tiny_images, **HALF)
