"""Recipes: the schedule, the optimizer, and the numbers of the paper's tables."""

import dataclasses

import keras
import numpy as np
import pytest

from keras_gdrn.training import RECIPES, Augmentation, Recipe
from keras_gdrn.training._recipe import as_recipe


@pytest.mark.parametrize(("warmup", "risen"), [(0, 0), (2, 2), (8, 3)])
def test_learning_rate_rises_and_falls_along_half_a_cosine(warmup, risen):
    """Of a short training, it rises for at most half of it."""
    schedule = Recipe(6, 8, warmup_epochs=warmup).schedule(steps_per_epoch=10)
    rates = np.array([float(schedule(step)) for step in range(61)])
    rise, fall = rates[: 10 * risen], rates[10 * risen :]
    expected = np.linspace(1e-3, 1e-2, 10 * risen, endpoint=False)
    np.testing.assert_allclose(rise, expected, rtol=1e-5)
    share = 0.5 * (1 + np.cos(np.pi * np.linspace(0, 1, len(fall))))
    np.testing.assert_allclose(fall, 1e-5 + (0.01 - 1e-5) * share, rtol=1e-4)


@pytest.mark.parametrize("saved", [False, True])
def test_weights_decay_but_not_biases(saved):
    """Also where a compiled model was saved and loaded."""
    recipe = Recipe(10, 8, learning_rate=0.1, weight_decay=0.5)
    optimizer = recipe.optimizer(steps_per_epoch=1000)
    if saved:
        config = keras.optimizers.serialize(optimizer)
        optimizer = keras.optimizers.deserialize(config)
    assert optimizer.epsilon == 1e-8  # that of the authors' framework
    names = ["kernel", "bias", "gamma", "beta", "log_sigma"]
    variables = [keras.Variable(np.ones(3), name=name) for name in names]
    optimizer.build(variables)
    optimizer.apply([np.zeros(3, "float32")] * 5)
    decayed, *kept = map(keras.ops.convert_to_numpy, variables)
    np.testing.assert_allclose(decayed, 1 - 0.1 * 0.5, rtol=1e-4)
    np.testing.assert_array_equal(kept, 1)


def test_labels_are_smoothed():
    scores = np.array([[2.0, 0.0, -1.0, 0.5]], "float32")
    target = 0.9 * np.array([1, 0, 0, 0]) + 0.1 / 4
    expected = np.log(np.exp(scores).sum()) - (target * scores).sum()
    found = Recipe(1, 8).loss()(np.eye(4, dtype="float32")[:1], scores)
    np.testing.assert_allclose(float(found), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(5, 4), (1, 5), (5, 2)])
def test_labels_of_a_wrong_width(shape):
    with pytest.raises(ValueError, match=r"one-hot \(batch, 10\).*shape \(\d, \d\)"):
        Recipe(1, 8).loss()(np.ones(shape, "float32"), np.zeros((5, 10), "float32"))


# Tables training-parameters and pre-training-parameters: epochs, batch size,
# learning rate, epochs of warm-up.
PUBLISHED = {
    "rescaled_fashion_mnist": (32, 64, 0.01, 0),
    "rescaled_cifar10": (90, 45, 0.01, 8),
    "rescaled_stl10_with_label_smoothing": (119, 17, 0.01, 8),
    "rescaled_fashion_mnist_first_stage": (16, 128, 0.01, 0),
    "rescaled_fashion_mnist_second_stage": (16, 64, 0.005, 0),
    "rescaled_cifar10_first_stage": (40, 128, 0.01, 8),
    "rescaled_cifar10_second_stage": (50, 45, 0.005, 0),
    "rescaled_stl10_first_stage": (50, 64, 0.01, 8),
    "rescaled_stl10_second_stage": (70, 17, 0.005, 0),
    "rescaled_stl10_separable": (170, 17, 0.005, 8),
    "rescaled_fashion_mnist_separable": (32, 64, 0.01, 8),
    "rescaled_cifar10_single": (90, 128, 0.01, 8),
}


def test_published_numbers():
    for name, numbers in PUBLISHED.items():
        r = as_recipe(name)
        found = (r.epochs, r.batch_size, r.learning_rate, r.warmup_epochs)
        assert found == numbers, name
    # With average pooling, which is the preset's, the paper smoothed no labels.
    names = ("stl10", "rescaled_cifar10", "rescaled_fashion_mnist")
    not_smoothed = {f"{name}_without_label_smoothing" for name in names}
    not_smoothed |= {"rescaled_stl10"}
    for name, recipe in RECIPES.items():
        jitter = (0, 0, 0, 0) if "fashion" in name else (0.2, 0.2, 0.2, 0.05)
        assert recipe.augmentation.jitter == jitter
        assert recipe.augmentation.flip == 0.5
        assert recipe.augmentation.padding == (24 if "stl10" in name else 0)
        assert bool(recipe.augmentation.cutout) == name.startswith("stl10")
        assert recipe.label_smoothing == (0.0 if name in not_smoothed else 0.1)
        decays_more = name == "rescaled_fashion_mnist_without_label_smoothing"
        assert recipe.weight_decay == (0.05 if decays_more else 0.025)
    assert not_smoothed < {*RECIPES}


WRONG = {
    Augmentation(): {
        "padding": (-1, 1.5),
        "flip": (-0.1, 1.1, "half"),
        **dict.fromkeys(
            ("elastic", "brightness", "contrast", "saturation", "blur"), (-0.1, np.inf)
        ),
        "hue": (-0.1, 0.6),
        "cutout": (2.0,),
    },
    Recipe(3, 8): {
        "epochs": (0, 1.5),
        "batch_size": (0, 1.5),
        "learning_rate": (1e-6, 0),
        "final_learning_rate": (-1e-6,),
        "warmup_epochs": (-1, 1.5),
        "weight_decay": (np.nan,),
        "label_smoothing": (1.1,),
        "augmentation": ({"flip": 0.5}, None),
    },
    Recipe(3, 8, final_learning_rate=0): {"learning_rate": (0,)},
}


@pytest.mark.parametrize("settings", WRONG)
def test_values_are_checked(settings):
    for name, values in WRONG[settings].items():
        for value in values:
            message = f"`{name}` must be .* {name}={value!r}"
            with pytest.raises(ValueError, match=message):
                dataclasses.replace(settings, **{name: value})
