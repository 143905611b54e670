"""Training in stages: with few scale channels first, then with more."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models import with_sigma0
from keras_gdrn.training._fit import fit
from keras_gdrn.training._processes import from_first_process
from keras_gdrn.training._recipe import Recipe
from keras_gdrn.training._time_limit import OutOfTime, TimeLimit, as_time_limit

AfterStage = Callable[["Stage", keras.Model, keras.callbacks.History], Any]


@dataclasses.dataclass(frozen=True)
class Stage:
    """Training by a recipe, with the scale channels at `sigma0`.

    Args:
        name: Name of the stage, and of its folder.
        recipe: A `Recipe`.
        sigma0: Initial scales σ_0; `None` leaves the model's own.
    """

    name: str
    recipe: Recipe
    sigma0: tuple[float, ...] | None = None


def train_in_stages(
    model: keras.Model,
    stages: Sequence[Stage],
    data: Any,
    *,
    out: str | os.PathLike | None = None,
    max_minutes: float | TimeLimit | None = None,
    after_stage: AfterStage | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: int | str = "auto",
    **options: Any,
) -> keras.Model:
    """Train a model with some scale channels, and go on with others by its weights.

    Each stage is a call of `fit`, from the weights of the stage before, into the folder
    `out/<name of the stage>`. The same call goes on after any interruption.

    Source: Perzanowski & Lindeberg, Appendix A.4: one scale channel at σ_0 = 1 first,
    which takes a fraction of the time and memory, then all of them.

    Args:
        model: Model that applies a `ScaleChannels`, as those of `gauss_der_resnet` do;
            any model, where no stage has a `sigma0`. The models of all stages share its
            weights.
        stages: Sequence of `Stage`, trained one after the other.
        data: As for `fit`, or a function from a `Stage` to such data, which can then
            have batches of its recipe's size.
        out: Folder of the run, made if need be.
        max_minutes: Stop after an epoch if another one would not end within so many
            minutes, of all stages; at least one is trained.
        after_stage: Function of each stage, its model and what `fit` returned.
        callbacks, verbose: As for `fit`. A callback that stops the training ends its
            stage, and the next one follows.
        **options: Further arguments of `fit`.

    Returns:
        The model of the last stage.

    Raises:
        OutOfTime: If `max_minutes` ended before the last stage did.
        ValueError: If there is no stage, or two have one name; or as `fit`.

    Example:

    >>> model = gauss_der_resnet((40, 40, 1), 10, (8, 12, 16), 1.4, SIX_SCALES)
    >>> one = Stage("one_channel", Recipe(8, 32), (1.0,))
    >>> six = Stage("six_channels", Recipe(1, 32, learning_rate=0.005), SIX_SCALES)
    >>> model = train_in_stages(model, [one, six], (images, labels), out="runs/digits")
    """
    _check_names(stages)
    limit = as_time_limit(max_minutes)
    trained = model
    for stage in stages:
        if from_first_process(lambda: limit.is_reached(0)):
            raise OutOfTime(f"{stage.name}: not begun")
        trained = _of_stage(model, stage)
        if verbose:
            print(f"Stage {stage.name}: {stage.recipe.epochs} epochs")
        history = fit(
            trained,
            stage.recipe,
            data(stage) if callable(data) else data,
            out=None if out is None else Path(out) / stage.name,
            max_minutes=limit,
            callbacks=callbacks,
            verbose=verbose,
            **options,
        )
        epochs = len(history.epoch)
        if epochs < stage.recipe.epochs and from_first_process(limit.is_reached):
            raise OutOfTime(f"{stage.name}: {epochs} epochs")
        if after_stage is not None:
            after_stage(stage, trained, history)
    return trained


def _of_stage(model: keras.Model, stage: Stage) -> keras.Model:
    """The model with the stage's scale channels; itself, if it has them."""
    if stage.sigma0 is None:
        return model
    wanted = tuple(map(float, stage.sigma0))
    layers = [layer for layer in model.layers if isinstance(layer, ScaleChannels)]
    is_so = len(layers) == 1 and tuple(layers[0].sigma0) == wanted
    return model if is_so else with_sigma0(model, stage.sigma0)


def _check_names(stages: Sequence[Stage]) -> None:
    names = [stage.name for stage in stages]
    if not names or len(set(names)) < len(names):
        raise ValueError(
            "`stages` must be one or more, each with a name of its own. "
            f"Received: stages with the names {names}"
        )
