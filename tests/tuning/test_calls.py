"""What `tuner.search` can be given, and what it says to write instead."""

import keras
import keras_tuner
import numpy as np
import pytest

from keras_gdrn.evaluation import ScaleGeneralization
from keras_gdrn.training import Recipe
from keras_gdrn.tuning import GaussDerResNetHyperModel, SearchSpace, _hypermodel

pytestmark = pytest.mark.filterwarnings(
    "ignore:(currentThread|getName):DeprecationWarning:keras_tuner"
)
SMALL = SearchSpace(
    blocks=(1,), stem_width=(2,), width=(2,), sigma0_range=(1.0, 1.0), batch_size=(8,)
).only("batch_size")


@pytest.fixture
def tuner(tmp_path):
    """Makes a tuner of one trial."""

    def make(**sets):
        space = SearchSpace(**{**vars(SMALL), **sets})
        hypermodel = GaussDerResNetHyperModel(
            (12, 12, 1), 3, space=space, recipe=Recipe(1, 8)
        )
        return keras_tuner.RandomSearch(
            hypermodel, "val_accuracy", max_trials=1, directory=tmp_path
        )

    return make


@pytest.fixture
def given(monkeypatch):
    """What a trial would have been trained on, and judged by."""
    calls = {}

    def train_in_stages(model, stages, data, **options):
        (stage,) = stages
        _hypermodel.pass_through(options.pop("callbacks"), model)
        calls.update(data=data(stage), epochs=stage.recipe.epochs, **options)

    def scale_generalization(model, tests):
        calls.update(tests=tests)
        return ScaleGeneralization(np.array([1.0]), np.array([0.5]))

    monkeypatch.setattr(_hypermodel, "train_in_stages", train_in_stages)
    monkeypatch.setattr(_hypermodel, "scale_generalization", scale_generalization)
    return calls


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("call", ["two arrays", "named arrays", "a pair"])
def test_images_and_labels(call, tuner, given, tiny_images):
    x, y = tiny_images
    positional = {"two arrays": (x, y), "named arrays": (), "a pair": ((x, y),)}[call]
    named = {"x": x, "y": y} if call == "named arrays" else {}
    tuner().search(*positional, **named, validation_data=(x[:5], y[:5]), verbose=0)
    assert_same(given["data"], (x, y))
    assert list(given["tests"]) == [1.0]
    assert_same(given["tests"][1.0], (x[:5], y[:5]))


def test_validation_split_takes_the_last_images(tuner, given, tiny_images):
    x, y = tiny_images
    tuner().search(x, y, validation_split=0.2, verbose=0)
    assert_same(given["data"], (x[:19], y[:19]))  # as Keras: 19.2 of 24
    assert_same(given["tests"][1.0], (x[19:], y[19:]))


def test_several_sizes_epochs_and_a_seed(tuner, given, tiny_images):
    tests = {1.0: tiny_images, 2.0: tiny_images}
    options = {"epochs": 3, "seed": 4, "verbose": 0}
    tuner().search(*tiny_images, validation_data=tests, **options)
    assert given["tests"] is tests
    assert {name: given[name] for name in options} == options


def test_batches_where_their_size_is_not_searched(tuner, given, tiny_images):
    import tensorflow as tf

    batches = tf.data.Dataset.from_tensor_slices(tiny_images).batch(8)
    tuner().search(batches, validation_data=batches, verbose=0)
    assert given["data"] is batches
    assert given["tests"] == {1.0: batches}


def test_batches_where_their_size_is_searched(tuner, tiny_images):
    import tensorflow as tf

    batches = tf.data.Dataset.from_tensor_slices(tiny_images).batch(8)
    with pytest.raises(
        ValueError, match=r"from the sizes \(8, 16\); or fix it by `Sea"
    ):
        tuner(batch_size=(8, 16)).search(batches, validation_data=tiny_images)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 8}, r"`batch_size` .* `SearchSpace\(batch_size=\(8,\)\)` fix"),
        ({"shuffle": False}, r"`shuffle` must be left out. .* always shuffled"),
        ({"class_weight": {0: 2.0}}, r"`class_weight` .* Possible are x, y, valid"),
        ({"steps_per_epoch": 9}, r"`steps_per_epoch` .*Received: steps_per_epoch=9"),
    ],
)
def test_what_the_recipe_decides(options, message, tuner, tiny_images):
    with pytest.raises(TypeError, match=message):
        tuner().search(*tiny_images, validation_data=tiny_images, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "`validation_data` or `validation_split` must be given.* no validation_d"),
        ({"validation_split": 1.5}, "between 0 and 1.*=1.5 of 24 images"),
        ({"validation_split": 0.99}, "leave images on both sides.*=0.99"),
        ({"validation_split": -0.1}, "between 0 and 1.*=-0.1"),
        ({"validation_split": 0.2, "validation_data": ()}, "one of them.*also valid"),
    ],
)
def test_validation_that_does_not_fit(options, message, tuner, tiny_images):
    with pytest.raises(ValueError, match=message):
        tuner().search(*tiny_images, **options)


def test_split_of_what_are_no_arrays(tuner):
    with pytest.raises(ValueError, match=r"`validation_data` instead. Received: func"):
        tuner().search(lambda batch_size: None, validation_split=0.2)


def test_labels_twice(tuner, tiny_images):
    with pytest.raises(ValueError, match=r"`y` must be left out.*Received: x=<func"):
        tuner().search(
            lambda batch_size: None, tiny_images[1], validation_data=tiny_images
        )


def test_data_that_do_not_fit_end_the_search(tuner, tiny_images):
    """They are no failure of the trial, after which the search would go on."""
    images, labels = tiny_images
    with pytest.raises(ValueError, match=r"as many labels as images.*and 23 labels"):
        tuner().search(images, labels[1:], validation_data=tiny_images, verbose=0)


@pytest.mark.parametrize(
    ("objective", "sizes", "names"),
    [
        ("val_loss", (1.0,), "val_mean_accuracy, val_min_accuracy, val_accuracy;"),
        ("val_accuracy", (2.0,), "val_min_accuracy; val_accuracy needs validation da"),
    ],
)
def test_an_objective_that_no_trial_has(objective, sizes, names, tiny_images, tmp_path):
    hypermodel = GaussDerResNetHyperModel((12, 12, 1), 3, space=SMALL)
    tuner = keras_tuner.RandomSearch(hypermodel, objective, directory=tmp_path)
    tests = dict.fromkeys(sizes, tiny_images)
    with pytest.raises(ValueError, match=f'{names}.*tive."val_mean_accuracy", "max"'):
        tuner.search(*tiny_images, validation_data=tests)


def test_a_callback_that_waits_for_the_validation(tuner, given, tiny_images):
    early = keras.callbacks.EarlyStopping
    options = {"validation_split": 0.2, "verbose": 0}
    with pytest.raises(ValueError, match=r'watch "loss" or "accuracy".*val_accuracy'):
        tuner().search(*tiny_images, callbacks=[early("val_accuracy")], **options)
    tuner().search(*tiny_images, callbacks=[early("loss")], **options)
