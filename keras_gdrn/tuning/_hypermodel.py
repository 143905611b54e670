"""The networks of this package as a hypermodel of Keras Tuner."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import keras
import keras_tuner
import numpy as np
from keras_tuner.errors import FatalValueError

from keras_gdrn._checks import (
    check_input_shape,
    check_keywords,
    check_number,
    check_positive_integer,
)
from keras_gdrn.evaluation import scale_generalization
from keras_gdrn.evaluation._test_data import check_datasets
from keras_gdrn.models import count_parameters, gauss_der_resnet, scale_channel
from keras_gdrn.models._builders import DECIDED, TAKES_CONVOLUTION
from keras_gdrn.training import Recipe, Stage, train_in_stages
from keras_gdrn.training._model import make_variables
from keras_gdrn.training._recipe import as_recipe
from keras_gdrn.tuning._search_space import SearchSpace
from keras_gdrn.tuning._validation_data import (
    at_size_1,
    check_objective,
    training_and_tests,
)

# Arguments of `gauss_der_resnet` that a trial's hyperparameters decide.
SEARCHED = ("input_shape", "classes", "ratio", "widths", "sigma0", "density", "order")
SEARCHED += ("scale_pooling", "spatial_selection", "scale_dropout", "zero_order")
SEARCHED += ("separable_blocks", *DECIDED)


class GaussDerResNetHyperModel(keras_tuner.HyperModel):
    """Gaussian derivative residual networks and their training, as a search space.

    Every trial returns three objectives to maximize: `val_accuracy`, the accuracy on
    validation images of size factor 1, and `val_mean_accuracy` and `val_min_accuracy`
    over all size factors of the validation data. It also returns `parameters`. (To
    exclude large networks, see Keras Tuner's `max_model_size`.) Scale channels whose
    last layer would reach beyond the image are left out.

    Args:
        input_shape: Shape of an image, `(height, width, channels)`.
        classes: Number of classes.
        space: A `SearchSpace`; by default `SearchSpace.for_images` of this size.
        recipe: All settings of training that are not searched: a `Recipe` or the name
            of one of `RECIPES`. Its share of warm-up is kept if a trial has fewer
            epochs.
        single_scale_epochs: Number of epochs that train one scale channel, at σ_0 = 1.
            The network with all channels starts from its weights, and is trained for
            the other epochs, if any, at half the learning rate (Appendix A.4).
        **network: Further arguments of `gauss_der_resnet`, which are not searched.

    Raises:
        ValueError: If an argument is out of its range, an argument of the network is
            one of the space's, or `space` is given and has networks whose last layer
            reaches beyond the image at σ_0 = 1.

    Example:

    >>> hypermodel = GaussDerResNetHyperModel((40, 40, 1), 10, recipe=Recipe(8, 32))
    >>> tuner = keras_tuner.RandomSearch(hypermodel, "val_accuracy", max_trials=20)
    >>> tuner.search(images, labels, validation_split=0.2)
    """

    def __init__(
        self,
        input_shape: tuple[int, int, int],
        classes: int,
        *,
        space: SearchSpace | None = None,
        recipe: Recipe | str = "rescaled_cifar10",
        single_scale_epochs: int = 0,
        **network: Any,
    ):
        super().__init__()
        check_number("single_scale_epochs", single_scale_epochs, whole=True)
        check_positive_integer("classes", classes)
        if len(shape := check_input_shape(input_shape)) != 3 or None in shape:
            raise ValueError(
                "`input_shape` must be (height, width, channels). "
                f"Received: input_shape={input_shape!r}"
            )
        takes = gauss_der_resnet, scale_channel, *TAKES_CONVOLUTION
        check_keywords(type(self).__name__, network, *takes, refused=SEARCHED)
        self.shape = {"input_shape": shape, "classes": classes}
        self._side = max(shape[:-1])
        self.space = space or SearchSpace.for_images(self._side)
        self.base_recipe = as_recipe(recipe)
        self.single_scale_epochs = single_scale_epochs
        self.network = network
        ratio, blocks = max(self.space.ratio), max(self.space.blocks)
        if space is not None and ratio ** (blocks + 1) > self._side:
            raise ValueError(
                f"`space` must not reach beyond the image of {self._side} pixels. "
                f"Received: space with ratio {ratio:g} and {blocks} blocks, which "
                f"reach {ratio ** (blocks + 1):.1f} pixels"
            )

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model:
        """The network, compiled by its recipe; `fit` compiles it again for its data."""
        architecture = self.space.architecture(hp)
        last = architecture["ratio"] ** len(architecture["widths"])
        fitting = [s for s in architecture["sigma0"] if s * last <= self._side]
        architecture["sigma0"] = fitting or architecture["sigma0"][:1]
        model = gauss_der_resnet(**self.shape, **architecture, **self.network)
        # Checkpoints also hold the variables of the optimizer.
        self.recipe(hp, self.base_recipe.epochs).compile(model, 1)
        make_variables(model)
        return model

    def recipe(
        self, hp: keras_tuner.HyperParameters, epochs: int, **fixed: Any
    ) -> Recipe:
        """The recipe that `hp` chooses, for these epochs, with some fields fixed."""
        share = self.base_recipe.warmup_epochs / self.base_recipe.epochs
        warmup_epochs = min(math.ceil(share * epochs), epochs - 1)
        chosen = {**self.space.training(hp), "warmup_epochs": warmup_epochs, **fixed}
        return replace(self.base_recipe, epochs=epochs, **chosen)

    def fit(
        self,
        hp: keras_tuner.HyperParameters,
        model: keras.Model,
        x: Any,
        y: Any = None,
        *,
        validation_data: Any = None,
        validation_split: float = 0.0,
        batch_size: int | None = None,
        epochs: int | None = None,
        initial_epoch: int = 0,
        seed: int = 0,
        out: str | os.PathLike | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        **options: Any,
    ) -> dict[str, float]:
        """Train the model and return its accuracies.

        Args:
            hp, model: Hyperparameters and model of a trial.
            x, y: Training images `(N, H, W, C)` in [0, 1] and integer labels `(N,)`.
                Or only `x`: any data that `training.fit` takes, or a function from a
                `Stage` to such data. Data that come as batches keep their batch size.
            validation_data: Arrays `(images, labels)` or batches of size factor 1, or
                these by size factor, as `scale_generalization` takes them.
            validation_split: Instead, the fraction of the arrays `x` and `y`, at their
                end, that is held out for validation at size factor 1.
            batch_size: Images in a batch, instead of the values of the space.
            epochs, initial_epoch: As `keras.Model.fit`; by default those of the
                recipe. Each of Hyperband's rounds has a learning rate schedule.
            seed: Random seed of shuffling, augmentation and dropout.
            out: Folder for checkpoints, from which the same call resumes.
            callbacks: As `keras.Model.fit`. If one monitors "val_accuracy" or
                "val_loss", each epoch ends with a validation at size factor 1.
            **options: Further arguments of `training.fit`, such as `verbose`.

        Returns:
            The objectives and the number of parameters, by name.

        Raises:
            keras_tuner.errors.FatalValueError: If an argument is invalid. It ends the
                search.
        """
        epochs_here = []  # in this process
        counter = keras.callbacks.LambdaCallback(lambda *e: epochs_here.append(e))
        callbacks = list(callbacks or ())
        options |= {"seed": seed, "out": out, "callbacks": [*callbacks, counter]}
        fixed = {} if batch_size is None else {"batch_size": batch_size}
        try:
            data, tests = training_and_tests(x, y, validation_data, validation_split)
            check_datasets(model, tests)
            check_objective(callbacks, tests)
            if any(getattr(c, "monitor", "").startswith("val_") for c in callbacks):
                options["validation_data"] = at_size_1(tests)
            epochs = epochs or self.base_recipe.epochs
            stages = self._stages(hp, epochs, initial_epoch, fixed)
            train_in_stages(model, stages, data, **options)
        except (TypeError, ValueError) as error:  # every trial would raise it
            raise FatalValueError(str(error)) from error
        if not epochs_here:  # all were trained by a process that has been killed
            run_empty_epoch(callbacks, model)
        found = scale_generalization(model, tests)
        objectives = {"val_mean_accuracy": float(np.mean(found.accuracies))}
        objectives["val_min_accuracy"] = float(min(found.accuracies))
        if 1.0 in tests:
            index = list(found.factors).index(1.0)
            objectives["val_accuracy"] = float(found.accuracies[index])
        return {"parameters": count_parameters(model), **objectives}

    def _stages(
        self, hp: keras_tuner.HyperParameters, epochs: int, first: int, fixed: dict
    ) -> list[Stage]:
        """The stages that remain from the epoch `first` on."""
        single = max(0, min(self.single_scale_epochs, epochs) - first)
        joint = epochs - first - single
        stages = []
        if single:
            stages.append(
                Stage("one_channel", self.recipe(hp, single, **fixed), (1.0,))
            )
        if joint:
            recipe = self.recipe(hp, joint, **fixed)
            if self.single_scale_epochs:
                rate = recipe.learning_rate / 2
                recipe = replace(recipe, learning_rate=rate, warmup_epochs=0)
            stages.append(Stage("all_channels", recipe))
        return stages


def run_empty_epoch(
    callbacks: Sequence[keras.callbacks.Callback], model: keras.Model
) -> None:
    """Runs an epoch without training: Keras Tuner needs a checkpoint of every trial."""
    every = keras.callbacks.CallbackList(list(callbacks), model=model)
    every.on_train_begin()
    every.on_epoch_begin(0)
    every.on_epoch_end(0)
    every.on_train_end()
