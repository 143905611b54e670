"""Training in stages: with few scale channels first, then with more."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_gdrn.layers import ScaleChannels
from keras_gdrn.models import with_input_shape, with_sigma0
from keras_gdrn.training._fit import fit
from keras_gdrn.training._recipe import Recipe


@dataclasses.dataclass(frozen=True)
class Stage:
    """Training by a recipe with the scale channels at `sigma0`.

    Args:
        name: Name of the stage, and of its folder.
        recipe: A `Recipe`.
        sigma0: Initial scales σ_0; `None` leaves the model's own.
        input_shape: Shape of an image, `(H, W, C)`; `None` leaves the model's own.
            Coarse channels need the same surroundings of objects as in the test.
    """

    name: str
    recipe: Recipe
    sigma0: tuple[float, ...] | None = None
    input_shape: tuple[int, int, int] | None = None


def train_in_stages(
    model: keras.Model,
    stages: Sequence[Stage],
    data: Any,
    *,
    out: str | os.PathLike | None = None,
    after_stage: Callable[[Stage, keras.Model, Any], Any] | None = None,
    **options: Any,
) -> keras.Model:
    """Train a model with some scale channels, then with others from its weights.

    Each stage calls `fit`, from the weights of the stage before, with the folder
    `out/<name of the stage>`. After any interruption, the same call resumes.

    Source: Perzanowski & Lindeberg, Appendix A.4: one scale channel at σ_0 = 1 first,
    which takes a fraction of the time and memory, then all of them.

    Args:
        model: Model with a `ScaleChannels` layer, or any model if no stage has a
            `sigma0`. The models of all stages share its weights.
        stages: Sequence of `Stage`, trained one after the other.
        data: As for `fit`, or a function from a `Stage` to such data.
        out: Folder of the run, created if needed.
        after_stage: Function called with each stage, its model and its history.
        **options: Further arguments of `fit`. A callback that stops the training ends
            its stage, and the next one follows.

    Returns:
        The model of the last stage.

    Raises:
        ValueError: If there is no stage, or two have the same name; or as `fit`.

    Example:

    >>> model = gauss_der_resnet((40, 40, 1), 10, (8, 12, 16), 1.4, SIX_SCALES)
    >>> one = Stage("one_channel", Recipe(8, 32), (1.0,))
    >>> six = Stage("six_channels", Recipe(1, 32, learning_rate=0.005), SIX_SCALES)
    >>> model = train_in_stages(model, [one, six], (images, labels), out="runs/digits")
    """
    names = [stage.name for stage in stages]
    if not names or len(set(names)) < len(names):
        raise ValueError(
            "`stages` must be one or more, with different names. "
            f"Received: stages with the names {names}"
        )
    trained = model
    for stage in stages:
        trained = _for_stage(model, stage)
        if options.get("verbose", True):
            print(f"Stage {stage.name}: {stage.recipe.epochs} epochs")
        options["out"] = None if out is None else Path(out) / stage.name
        own = data(stage) if callable(data) else data
        history = fit(trained, stage.recipe, own, **options)
        if after_stage is not None:
            after_stage(stage, trained, history)
    return trained


def _for_stage(model: keras.Model, stage: Stage) -> keras.Model:
    """The model with the scale channels and input shape of a stage."""
    sigma0, shape = stage.sigma0, stage.input_shape
    layers = [layer for layer in model.layers if isinstance(layer, ScaleChannels)]
    own = [tuple(layer.sigma0) for layer in layers]
    if sigma0 is not None and own != [tuple(sigma0)]:
        model = with_sigma0(model, sigma0)
    if shape is not None and model.input_shape[1:] != tuple(shape):
        model = with_input_shape(model, shape)
    return model
