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
def search(tmp_path, monkeypatch):
    """Searches with a tuner of one trial; what that would train on and be judged by."""

    def run(*args, objective="val_accuracy", sizes=(8,), **given):
        calls = {}

        def train_in_stages(model, stages, data, **options):
            _hypermodel.pass_through(options.pop("callbacks"), model)
            data = data(stages[0]) if callable(data) else data
            calls.update(data=data, epochs=stages[0].recipe.epochs, **options)

        def scale_generalization(model, tests):
            calls.update(tests=tests)
            return ScaleGeneralization(np.array([1.0]), np.array([0.5]))

        monkeypatch.setattr(_hypermodel, "train_in_stages", train_in_stages)
        monkeypatch.setattr(_hypermodel, "scale_generalization", scale_generalization)
        hypermodel = GaussDerResNetHyperModel(
            *((12, 12, 1), 3),
            space=SearchSpace(**{**vars(SMALL), "batch_size": sizes}),
            recipe=Recipe(1, 8),
        )
        options = {"max_trials": 1, "directory": tmp_path, "overwrite": True}
        tuner = keras_tuner.RandomSearch(hypermodel, objective, **options)
        tuner.search(*args, verbose=0, **given)
        return calls

    return run


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_images_and_labels(search, tiny_images):
    x, y = tiny_images
    for arguments, named in (((x, y), {}), ((), {"x": x, "y": y}), (((x, y),), {})):
        given = search(*arguments, **named, validation_data=(x[:5], y[:5]))
        assert_same(given["data"], (x, y))
        assert_same(given["tests"][1.0], (x[:5], y[:5]))
    given = search(x, y, validation_split=0.2)
    assert_same(given["data"], (x[:19], y[:19]))  # as Keras: 19.2 of 24
    assert_same(given["tests"][1.0], (x[19:], y[19:]))


def test_several_sizes_epochs_and_a_seed(search, tiny_images):
    tests = {1.0: tiny_images, 2.0: tiny_images}
    given = search(*tiny_images, validation_data=tests, epochs=3, seed=4)
    assert given["tests"] is tests
    assert (given["epochs"], given["seed"]) == (3, 4)


def test_batches(search, tiny_images):
    batches = tf.data.Dataset.from_tensor_slices(tiny_images).batch(8)
    given = search(batches, validation_data=batches)
    assert given["data"] is batches
    assert given["tests"] == {1.0: batches}
    asked = []
    search(asked.append, validation_data=batches)
    assert asked == [8]
    with pytest.raises(ValueError, match=r"from the sizes \(8, 16\); or"):
        search(batches, validation_data=tiny_images, sizes=(8, 16))


IMAGES, LABELS = np.zeros((24, 12, 12, 1), "float32"), np.arange(24) % 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": {0: 2.0}}, r"`class_weight` .* Possible are x, y, epochs"),
        ({"batch_size": 4}, r"`batch_size` .*`SearchSpace\(batch_size=\(32,\)\)`"),
        ({}, "`validation_data` or `validation_split` must be given.* no validation_d"),
        ({"validation_split": 1.5}, "between 0 and 1.*=1.5 of 24 images"),
        ({"validation_split": 0.99}, "leave images on both sides.*=0.99"),
        ({"validation_split": 0.2, "validation_data": ()}, "one of them.*also valid"),
        (
            {"validation_split": 0.2, "objective": "val_loss"},
            "objective, val_loss.*Rec",
        ),
        ({"validation_data": (IMAGES[:, :8], LABELS)}, r"\(24, 8, 12, 1\)"),
        ({"validation_data": {2.0: (IMAGES + 255, LABELS)}}, "factor 2: .* by 255"),
    ],
)
def test_options_that_do_not_fit(options, message, search):
    """They are no failure of a trial, after which the search would go on."""
    with pytest.raises(keras_tuner.errors.FatalError, match=message):
        search(IMAGES, LABELS, **options)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (lambda size: None, None, r"`validation_data` instead. Received: func"),
        (lambda size: None, [0], r"`y` must be left out.*Received: x=<func"),
        (IMAGES[:3], np.arange(2), "as many labels as images"),
        (IMAGES, LABELS + 1, r"number the 3 classes.*\[3"),
    ],
)
def test_data_that_do_not_fit(x, y, message, search):
    with pytest.raises(keras_tuner.errors.FatalError, match=message):
        search(x, y, validation_split=0.5)
