"""Recipes: the schedule, the optimizer, and the numbers of the paper's tables."""

import dataclasses

import keras
import numpy as np
import pytest

from keras_gdrn.models import architecture
from keras_gdrn.training import RECIPES, Recipe, fit


def learning_rates(recipe, steps_per_epoch):
    schedule = recipe.schedule(steps_per_epoch)
    steps = range(recipe.epochs * steps_per_epoch + 1)
    return np.array([float(schedule(step)) for step in steps])


@pytest.mark.parametrize(("warmup", "risen"), [(0, 0), (2, 2), (8, 3)])
def test_learning_rate_rises_and_falls_along_half_a_cosine(warmup, risen):
    """Of a short training, it rises for at most half of it."""
    rates = learning_rates(Recipe(6, 8, warmup_epochs=warmup), steps_per_epoch=10)
    rise, fall = rates[: 10 * risen], rates[10 * risen :]
    expected = np.linspace(1e-3, 1e-2, 10 * risen, endpoint=False)
    np.testing.assert_allclose(rise, expected, rtol=1e-5)
    share = 0.5 * (1 + np.cos(np.pi * np.linspace(0, 1, len(fall))))
    np.testing.assert_allclose(fall, 1e-5 + (0.01 - 1e-5) * share, rtol=1e-4)


def test_weights_decay_but_not_biases():
    recipe = Recipe(10, 8, learning_rate=0.1, weight_decay=0.5)
    optimizer = recipe.optimizer(steps_per_epoch=1000)
    kernel = keras.Variable(np.ones(3), name="kernel")
    bias = keras.Variable(np.ones(3), name="bias")
    assert optimizer.epsilon == 1e-8  # that of the authors' framework
    optimizer.build([kernel, bias])
    optimizer.apply([np.zeros(3, "float32"), np.zeros(3, "float32")])
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(kernel), 1 - 0.1 * 0.5, rtol=1e-4
    )
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(bias), 1)


def test_labels_are_smoothed():
    scores = np.array([[2.0, 0.0, -1.0, 0.5]], "float32")
    target = 0.9 * np.array([1, 0, 0, 0]) + 0.1 / 4
    expected = np.log(np.exp(scores).sum()) - (target * scores).sum()
    found = Recipe(1, 8).loss()(np.eye(4, dtype="float32")[:1], scores)
    np.testing.assert_allclose(float(found), expected, rtol=1e-5)


# Tables training-parameters and pre-training-parameters: epochs, batch size,
# learning rate, epochs of warm-up.
@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("rescaled_fashion_mnist", (32, 64, 0.01, 0)),
        ("rescaled_cifar10", (90, 45, 0.01, 8)),
        ("rescaled_stl10_with_label_smoothing", (119, 17, 0.01, 8)),
        ("rescaled_fashion_mnist_first_stage", (16, 128, 0.01, 0)),
        ("rescaled_fashion_mnist_second_stage", (16, 64, 0.005, 0)),
        ("rescaled_cifar10_first_stage", (40, 128, 0.01, 8)),
        ("rescaled_cifar10_second_stage", (50, 45, 0.005, 0)),
        ("rescaled_stl10_first_stage", (50, 64, 0.01, 8)),
        ("rescaled_stl10_second_stage", (70, 17, 0.005, 0)),
        ("rescaled_stl10_separable", (170, 17, 0.005, 8)),
        ("rescaled_fashion_mnist_separable", (32, 64, 0.01, 8)),
        ("rescaled_cifar10_single", (90, 128, 0.01, 8)),
    ],
)
def test_published_numbers(name, numbers):
    recipe = RECIPES[name]
    found = (recipe.epochs, recipe.batch_size, recipe.learning_rate)
    assert (*found, recipe.warmup_epochs) == numbers
    assert recipe.weight_decay == 0.025
    assert recipe.label_smoothing == 0.1


def test_published_augmentation():
    for name, recipe in RECIPES.items():
        color = "fashion" not in name
        jitter = (0.2, 0.2, 0.2, 0.05) if color else (0, 0, 0, 0)
        assert recipe.augmentation.jitter == jitter
        assert recipe.augmentation.flip == 0.5
        assert recipe.augmentation.padding == (24 if "stl10" in name else 0)
        assert bool(recipe.augmentation.cutout) == name.startswith("stl10")


def test_without_label_smoothing():
    names = {name for name in RECIPES if name.endswith("without_label_smoothing")}
    assert len(names) == 3
    # With average pooling, which is the preset's, the paper used none.
    names |= {"rescaled_stl10"}
    assert {name for name in RECIPES if RECIPES[name].label_smoothing == 0} == names
    fashion = RECIPES["rescaled_fashion_mnist_without_label_smoothing"]
    assert fashion.weight_decay == 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["rescaled_fashion_mnist_separable", "rescaled_cifar10", "stl10"]
)
def test_each_recipe_trains_the_network_of_its_name(name, monkeypatch):
    """All but the training itself."""
    trained = []
    monkeypatch.setattr(
        keras.Model, "fit", lambda model, *_, **__: trained.append(model)
    )
    model = architecture(name)
    images = np.zeros((3, *model.input_shape[1:]), "float32")
    fit(model, RECIPES[name], (images, np.arange(3)))
    assert trained == [model]
    assert model.optimizer.built


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "epochs": (0, 1.5, True),
        "batch_size": (0,),
        "learning_rate": (1e-6,),
        "final_learning_rate": (-1e-6,),
        "warmup_epochs": (-1,),
        "weight_decay": (float("nan"),),
        "label_smoothing": (1.1,),
        "augmentation": ({"flip": 0.5}, None),
    }.items(),
)
def test_values_are_checked(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"`{name}` must be .* {name}={value!r}"):
            dataclasses.replace(Recipe(3, 8), **{name: value})
