"""The paper's recipes."""

import dataclasses

from keras_gdrn.training._augment import Augmentation
from keras_gdrn.training._recipe import Recipe

_FLIP = Augmentation(flip=0.5)
_FLIP_AND_JITTER = Augmentation(
    flip=0.5, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05
)
_STL10_AUGMENTATION = dataclasses.replace(_FLIP_AND_JITTER, padding=24)
# The paper does not state the size of the square; 32 is that of the inventors of
# cutout for STL-10 with augmentation.
_CUTOUT = dataclasses.replace(_STL10_AUGMENTATION, cutout=32)

# Table training-parameters, but for the scale dropout: that is in `ARCHITECTURES`.
_FASHION_MNIST = Recipe(32, 64, augmentation=_FLIP)
_CIFAR10 = Recipe(90, 45, warmup_epochs=8, augmentation=_FLIP_AND_JITTER)
_STL10 = Recipe(119, 17, warmup_epochs=8, augmentation=_STL10_AUGMENTATION)
# Sec. single-scale-exp: the batch size is not stated.
_SINGLE_STL10 = dataclasses.replace(_STL10, batch_size=64, augmentation=_CUTOUT)


def _without_smoothing(recipe: Recipe, **changes) -> Recipe:
    return dataclasses.replace(recipe, label_smoothing=0.0, **changes)


def _first_stage(recipe: Recipe, epochs: int, batch_size: int) -> Recipe:
    """One scale channel (Table pre-training-parameters)."""
    return dataclasses.replace(recipe, epochs=epochs, batch_size=batch_size)


def _second_stage(recipe: Recipe, epochs: int) -> Recipe:
    """All scale channels, from the weights of the first stage; without warm-up."""
    return dataclasses.replace(
        recipe, epochs=epochs, learning_rate=0.005, warmup_epochs=0
    )


# The paper's trainings, by name; those of a preset have its name.
RECIPES: dict[str, Recipe] = {
    "rescaled_fashion_mnist": _FASHION_MNIST,
    "rescaled_cifar10": _CIFAR10,
    # Sec. stl10-experiments: not of the network with average pooling, the best one.
    "rescaled_stl10": _without_smoothing(_STL10),
    # Sec. single-scale-exp: the published STL-10.
    "stl10": _SINGLE_STL10,
    "stl10_without_label_smoothing": _without_smoothing(_SINGLE_STL10),
    # Appendix A.1: one scale channel.
    "rescaled_fashion_mnist_single": _FASHION_MNIST,
    "rescaled_cifar10_single": dataclasses.replace(_CIFAR10, batch_size=128),
    "rescaled_stl10_single": dataclasses.replace(_STL10, batch_size=64),
    # Appendix A.2: depthwise-separable, all with label smoothing and a warm-up.
    "rescaled_fashion_mnist_separable": dataclasses.replace(
        _FASHION_MNIST, warmup_epochs=8
    ),
    "rescaled_cifar10_separable": _CIFAR10,
    "rescaled_stl10_separable": dataclasses.replace(
        _STL10, epochs=170, learning_rate=0.005
    ),
    # Appendix A.3, and Sec. stl10-experiments for max and logsumexp pooling.
    "rescaled_fashion_mnist_without_label_smoothing": _without_smoothing(
        _FASHION_MNIST, weight_decay=0.05
    ),
    "rescaled_cifar10_without_label_smoothing": _without_smoothing(_CIFAR10),
    "rescaled_stl10_with_label_smoothing": _STL10,
    # Appendix A.4: two stages.
    "rescaled_fashion_mnist_first_stage": _first_stage(_FASHION_MNIST, 16, 128),
    "rescaled_fashion_mnist_second_stage": _second_stage(_FASHION_MNIST, 16),
    "rescaled_cifar10_first_stage": _first_stage(_CIFAR10, 40, 128),
    "rescaled_cifar10_second_stage": _second_stage(_CIFAR10, 50),
    "rescaled_stl10_first_stage": _first_stage(_STL10, 50, 64),
    "rescaled_stl10_second_stage": _second_stage(_STL10, 70),
}


def as_recipe(recipe: Recipe | str) -> Recipe:
    """A recipe as it is, or one of `RECIPES` by its name."""
    if isinstance(recipe, str) and recipe not in RECIPES:
        raise ValueError(
            f"`recipe` must be a `Recipe` or one of {sorted(RECIPES)}. "
            f"Received: recipe={recipe!r}"
        )
    chosen = RECIPES[recipe] if isinstance(recipe, str) else recipe
    if not isinstance(chosen, Recipe):
        raise ValueError(
            "`recipe` must be a `Recipe` or a name in `RECIPES`. "
            f"Received: recipe={recipe!r}"
        )
    return chosen
