"""How a network is trained, and the recipes of the paper."""

from dataclasses import dataclass, replace

import keras
from keras import ops

from keras_gdrn._checks import (
    check_number,
    check_positive,
    check_positive_integer,
    did_you_mean,
    shown,
)
from keras_gdrn.training._augment import Augmentation

# Weight decay is only for what multiplies features.
NOT_DECAYED = ["bias", "gamma", "beta", "log_sigma"]


@keras.saving.register_keras_serializable(package="keras_gdrn")
class Crossentropy(keras.losses.Loss):
    """Cross-entropy of scores with label smoothing, for integer or one-hot labels.

    Keras' own loss for integer labels has no smoothing.

    Args:
        label_smoothing: Fraction of the label that is spread over all classes.

    Call:
        Labels `(batch,)` or `(batch, 1)`, integers, or `(batch, class)`, one-hot, and
        scores `(batch, class)`. The loss of a label that is no class is NaN.

    Example:

    >>> model.compile("adamw", Crossentropy(0.1), metrics=["accuracy"])
    """

    def __init__(
        self, label_smoothing: float = 0.0, name: str = "crossentropy", **kwargs
    ):
        super().__init__(name=name, **kwargs)
        check_number("label_smoothing", label_smoothing, highest=1)
        self.label_smoothing = float(label_smoothing)

    def call(self, y_true, y_pred):
        classes = y_pred.shape[-1]
        if len(y_true.shape) == 2 and y_true.shape[-1] not in (None, 1, classes):
            raise ValueError(
                "Labels must be (batch,), (batch, 1) or one-hot (batch, "
                f"{classes}). Received: labels of shape {tuple(y_true.shape)}"
            )
        if len(y_true.shape) < 2 or y_true.shape[-1] != classes:
            labels = ops.cast(ops.reshape(y_true, (-1,)), "int32")
            y_true = ops.one_hot(labels, classes, dtype=y_pred.dtype)
            # A target of zeros would give the lowest possible loss.
            known = (labels >= 0) & (labels < classes)
            y_true = ops.where(ops.expand_dims(known, -1), y_true, float("nan"))
        return keras.losses.categorical_crossentropy(
            y_true, y_pred, from_logits=True, label_smoothing=self.label_smoothing
        )

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable(package="keras_gdrn")
class AdamW(keras.optimizers.AdamW):
    """Keras' AdamW without decay of biases, normalization and learned scales.

    Keras forgets what is not decayed when it saves an optimizer.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.exclude_from_weight_decay(var_names=NOT_DECAYED)


@dataclass(frozen=True)
class Recipe:
    """How `fit` trains: AdamW on the cross-entropy, its learning rate, augmentation.

    For `warmup_epochs`, which count among the epochs, the learning rate rises linearly
    from a tenth of `learning_rate`. Then it falls in each step, along half a cosine, to
    `final_learning_rate`.

    Source: Perzanowski & Lindeberg, Table training-parameters and Sec. 5.2.
    Departure: biases and the parameters of batch normalization are not decayed; the
    paper says nothing about them. Dropout is a part of the network.

    Args:
        epochs: Number of passes over the data.
        batch_size: Images in a batch; the last one of an epoch may be smaller.
        learning_rate: Highest learning rate.
        final_learning_rate: Learning rate at the end.
        warmup_epochs: Epochs during which the learning rate rises, limited to half of
            `epochs`.
        weight_decay: Decoupled, as in AdamW: in a step, a weight is reduced by its
            `learning_rate * weight_decay`-th part.
        label_smoothing: Fraction of the label that is spread over all classes.
        augmentation: An `Augmentation`.

    Raises:
        ValueError: If a value is out of its range.
    """

    epochs: int
    batch_size: int
    learning_rate: float = 0.01
    final_learning_rate: float = 1e-5
    warmup_epochs: int = 0
    weight_decay: float = 0.025
    label_smoothing: float = 0.1
    augmentation: Augmentation = Augmentation()

    def __post_init__(self):
        check_positive_integer("epochs", self.epochs)
        check_positive_integer("batch_size", self.batch_size)
        check_number("warmup_epochs", self.warmup_epochs, whole=True)
        check_number("final_learning_rate", lowest := self.final_learning_rate)
        check_number("learning_rate", self.learning_rate, lowest=lowest)
        check_positive("learning_rate", self.learning_rate)
        check_number("weight_decay", self.weight_decay)
        check_number("label_smoothing", self.label_smoothing, highest=1)
        if not isinstance(self.augmentation, Augmentation):
            raise ValueError(
                "`augmentation` must be an `Augmentation`. "
                f"Received: augmentation={self.augmentation!r}"
            )

    def optimizer(self, steps_per_epoch: int) -> keras.optimizers.Optimizer:
        """AdamW with the learning rate schedule, for epochs of this many steps."""
        return AdamW(
            self.schedule(steps_per_epoch),
            weight_decay=self.weight_decay,
            epsilon=1e-8,  # that of the authors' framework; Keras has 1e-7
        )

    def schedule(
        self, steps_per_epoch: int
    ) -> keras.optimizers.schedules.LearningRateSchedule:
        """The learning rate as a function of the step."""
        rate = self.learning_rate
        warmup = int(min(self.warmup_epochs, self.epochs / 2) * steps_per_epoch)
        return keras.optimizers.schedules.CosineDecay(
            0.1 * rate if warmup else rate,
            decay_steps=self.epochs * steps_per_epoch - warmup,
            alpha=self.final_learning_rate / rate,
            warmup_target=rate if warmup else None,
            warmup_steps=warmup,
        )

    def loss(self) -> "Crossentropy":
        """The cross-entropy with this label smoothing, for any labels."""
        return Crossentropy(self.label_smoothing)

    def compile(
        self, model: keras.Model, steps_per_epoch: int, jit_compile: bool | str = "auto"
    ) -> None:
        """Compile a classifier for `model.fit` by this recipe.

        Epochs, data, augmentation and checkpoints are left to you; `training.fit` takes
        care of them.

        Args:
            model: A model from images to scores `(batch, class)`.
            steps_per_epoch: Number of batches in an epoch.
            jit_compile: As for `keras.Model.compile`.

        Example:

        >>> train = rescaled("digits", "train", batch_size=32, shuffle=True)
        >>> recipe = Recipe(epochs=8, batch_size=32)
        >>> recipe.compile(model, steps_per_epoch=len(train))
        >>> model.fit(train, epochs=recipe.epochs, shuffle=False)
        """
        model.compile(
            self.optimizer(steps_per_epoch),
            self.loss(),
            weighted_metrics=["accuracy"],
            jit_compile=jit_compile,
        )


_FLIP = Augmentation(flip=0.5)
_FLIP_AND_JITTER = Augmentation(
    flip=0.5, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05
)
_PADDED = replace(_FLIP_AND_JITTER, padding=24)
# The paper does not state the size of the square; 32 is that of the inventors of
# cutout for STL-10 with augmentation.
_CUTOUT = replace(_PADDED, cutout=32)

# Table training-parameters, except the scale dropout, which is in `ARCHITECTURES`.
_FASHION = Recipe(32, 64, augmentation=_FLIP)
_CIFAR10 = Recipe(90, 45, warmup_epochs=8, augmentation=_FLIP_AND_JITTER)
_STL10 = Recipe(119, 17, warmup_epochs=8, augmentation=_PADDED)
# Sec. single-scale-exp: the batch size is not stated.
_SINGLE_STL10 = replace(_STL10, batch_size=64, augmentation=_CUTOUT)


def _second_stage(recipe: Recipe, epochs: int) -> Recipe:
    """All scale channels, from the weights of the first stage; without warm-up."""
    return replace(recipe, epochs=epochs, learning_rate=0.005, warmup_epochs=0)


# By name; the recipe of a preset has its name.
RECIPES: dict[str, Recipe] = {
    "rescaled_fashion_mnist": _FASHION,
    "rescaled_cifar10": _CIFAR10,
    # Sec. stl10-experiments: the best network, with average pooling, has none.
    "rescaled_stl10": replace(_STL10, label_smoothing=0.0),
    # Sec. single-scale-exp: the published STL-10.
    "stl10": _SINGLE_STL10,
    "stl10_without_label_smoothing": replace(_SINGLE_STL10, label_smoothing=0.0),
    # Appendix A.1: one scale channel.
    "rescaled_fashion_mnist_single": _FASHION,
    "rescaled_cifar10_single": replace(_CIFAR10, batch_size=128),
    "rescaled_stl10_single": replace(_STL10, batch_size=64),
    # Appendix A.2: depthwise-separable, all with label smoothing and a warm-up.
    "rescaled_fashion_mnist_separable": replace(_FASHION, warmup_epochs=8),
    "rescaled_cifar10_separable": _CIFAR10,
    "rescaled_stl10_separable": replace(_STL10, epochs=170, learning_rate=0.005),
    # Appendix A.3, and Sec. stl10-experiments for max and logsumexp pooling.
    "rescaled_fashion_mnist_without_label_smoothing": replace(
        _FASHION, weight_decay=0.05, label_smoothing=0.0
    ),
    "rescaled_cifar10_without_label_smoothing": replace(_CIFAR10, label_smoothing=0.0),
    "rescaled_stl10_with_label_smoothing": _STL10,
    # Appendix A.4: first one scale channel (Table pre-training-parameters), then all.
    "rescaled_fashion_mnist_first_stage": replace(_FASHION, epochs=16, batch_size=128),
    "rescaled_fashion_mnist_second_stage": _second_stage(_FASHION, 16),
    "rescaled_cifar10_first_stage": replace(_CIFAR10, epochs=40, batch_size=128),
    "rescaled_cifar10_second_stage": _second_stage(_CIFAR10, 50),
    "rescaled_stl10_first_stage": replace(_STL10, epochs=50, batch_size=64),
    "rescaled_stl10_second_stage": _second_stage(_STL10, 70),
}


def as_recipe(recipe: Recipe | str) -> Recipe:
    """A recipe as it is, or one of `RECIPES` by its name."""
    chosen = RECIPES.get(recipe) if isinstance(recipe, str) else recipe
    if not isinstance(chosen, Recipe):
        raise ValueError(
            "`recipe` must be a `Recipe` or one of "
            f"{sorted(RECIPES)}.{did_you_mean(recipe, RECIPES)} "
            f"Received: recipe={shown(recipe)}"
        )
    return chosen
