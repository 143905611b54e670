"""What `tuner.search` can be given, and what it says to write instead."""

import keras_tuner
import numpy as np
import pytest
import tensorflow as tf

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
def search(tmp_path):
    """Searches with a tuner of one trial."""

    def run(*args, objective="val_accuracy", batch_size=(8,), **given):
        space = SearchSpace(**{**vars(SMALL), "batch_size": batch_size})
        hypermodel = GaussDerResNetHyperModel(
            (12, 12, 1), 3, space=space, recipe=Recipe(1, 8)
        )
        tuner = keras_tuner.RandomSearch(
            hypermodel, objective, max_trials=1, directory=tmp_path / str(batch_size)
        )
        tuner.search(*args, **given)

    return run


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
def test_images_and_labels(call, search, given, tiny_images):
    x, y = tiny_images
    positional = {"two arrays": (x, y), "named arrays": (), "a pair": ((x, y),)}[call]
    named = {"x": x, "y": y} if call == "named arrays" else {}
    search(*positional, **named, validation_data=(x[:5], y[:5]), verbose=0)
    assert_same(given["data"], (x, y))
    assert list(given["tests"]) == [1.0]
    assert_same(given["tests"][1.0], (x[:5], y[:5]))


def test_validation_split_takes_the_last_images(search, given, tiny_images):
    x, y = tiny_images
    search(x, y, validation_split=0.2, verbose=0)
    assert_same(given["data"], (x[:19], y[:19]))  # as Keras: 19.2 of 24
    assert_same(given["tests"][1.0], (x[19:], y[19:]))


def test_several_sizes_epochs_and_a_seed(search, given, tiny_images):
    tests = {1.0: tiny_images, 2.0: tiny_images}
    options = {"epochs": 3, "seed": 4, "verbose": 0}
    search(*tiny_images, validation_data=tests, **options)
    assert given["tests"] is tests
    assert {name: given[name] for name in options} == options


def test_batches(search, given, tiny_images):
    batches = tf.data.Dataset.from_tensor_slices(tiny_images).batch(8)
    search(batches, validation_data=batches, verbose=0)
    assert given["data"] is batches
    assert given["tests"] == {1.0: batches}
    with pytest.raises(ValueError, match=r"from the sizes \(8, 16\); or fix it by"):
        search(batches, validation_data=tiny_images, batch_size=(8, 16))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": {0: 2.0}}, r"`class_weight` .* Possible are x, y, valid"),
        ({"shuffle": False}, r"`shuffle` must be left out. .* always shuffled"),
        ({}, "`validation_data` or `validation_split` must be given.* no validation_d"),
        ({"validation_split": 1.5}, "between 0 and 1.*=1.5 of 24 images"),
        ({"validation_split": 0.99}, "leave images on both sides.*=0.99"),
        ({"validation_split": 0.2, "validation_data": ()}, "one of them.*also valid"),
        ({"validation_split": 0.2, "objective": "val_loss"}, r"val_accuracy;.*\"max\""),
    ],
)
def test_options_that_do_not_fit(options, message, search, tiny_images):
    with pytest.raises((TypeError, ValueError), match=message):
        search(*tiny_images, **options)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (lambda size: None, None, r"`validation_data` instead. Received: func"),
        (lambda size: None, [0], r"`y` must be left out.*Received: x=<func"),
        (np.zeros((3, 12, 12, 1)), np.arange(2), "as many labels as images"),
    ],
)
def test_data_that_do_not_fit(x, y, message, search):
    """They are no failure of the trial, after which the search would go on."""
    with pytest.raises(ValueError, match=message):
        search(x, y, validation_split=0.5, verbose=0)


def test_an_objective_of_a_size_that_is_not_there(search, tiny_images):
    with pytest.raises(ValueError, match="val_min_accuracy; val_accuracy needs valid"):
        search(*tiny_images, validation_data={2.0: tiny_images})
