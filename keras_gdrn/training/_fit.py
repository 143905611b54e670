"""Training by a recipe, with a log and checkpoints, on from any interruption."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gdrn.layers import ScaleChannels, ScalePooling

from . import _callbacks, _devices, _processes, _run_folder
from ._arguments import check_number
from ._batches import evaluation_batches, training_batches
from ._recipe import Recipe
from ._shares import SharedBatches, check_divisible, withheld


def fit(
    model: keras.Model,
    recipe: Recipe,
    data: Any,
    *,
    validation_data: Any = None,
    out: str | os.PathLike | None = None,
    seed: int = 0,
    max_minutes: float | None = None,
    jit_compile: bool | str = "auto",
    steps_per_execution: int = 1,
    tensorboard: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: int | str = "auto",
) -> keras.callbacks.History:
    """Compile a classifier and train it by a recipe.

    With a folder `out`, each epoch ends with a row in `log.csv` and a checkpoint of
    the weights and of the optimizer; the same call goes on after the last whole epoch,
    whenever and however it was interrupted, and returns at once if all epochs are
    done. Shuffling, augmentation and dropout are seeded by the epoch, so that the
    result is that of a run without interruption, bit by bit where the backend computes
    the same twice.

    Mixed precision is a matter of the model: build it under
    `keras.config.set_dtype_policy("mixed_bfloat16")`. So are several GPUs: build it,
    and call `fit`, under `on_devices("all")`. Each then trains on its share of every
    batch. Of several processes on JAX, all get the same data and prepare whole batches;
    only the first one reads and writes `out`.

    Args:
        model: a functional model from images `(batch, H, W, C)` to scores `(batch,
            class)`, with at least 2 classes.
        recipe: a `Recipe`, such as one of `RECIPES`.
        data: arrays `(images, labels)`, or a `tf.data.Dataset` of batches that
            shuffles them itself, such as `rescaled(…, batch_size=recipe.batch_size,
            shuffle=True)`. Images are in [0, 1]; labels are integers `(batch,)`.
        validation_data: the same, not shuffled; evaluated after each epoch.
        out: folder of the run, made if need be.
        seed: of shuffling, augmentation and dropout. The weights were drawn before:
            see `keras.utils.set_random_seed`.
        max_minutes: stop after an epoch if another one would not end within so many
            minutes; at least one is trained. The same call goes on.
        jit_compile, steps_per_execution: as for `keras.Model.compile`. The number of
            steps of an epoch must be a multiple of `steps_per_execution`, which is 1
            on several devices; on these, TensorFlow does not take `jit_compile=True`.
        tensorboard: whether to write `out/tensorboard` too.
        callbacks: further Keras callbacks. Theirs is the state that is not restored.
        verbose: as for `keras.Model.fit`: 1 is a progress bar, 2 a line for an epoch.

    Returns:
        The history of this call; with `out`, of the whole run, as it is in the log.

    Raises:
        ValueError: if an argument does not fit, for instance labels that are no
            classes of the model, a model with another scale dropout than the recipe's
            or that was built for other devices, or batches that cannot be shared out.
        FileExistsError: if `out` holds another run.
        RuntimeError: in the other ones of several processes, if the first has failed.

    Example:

    >>> model = from_preset("rescaled_cifar10")
    >>> recipe = RECIPES["rescaled_cifar10"]
    >>> data = rescaled("cifar10", "train", batch_size=45, shuffle=True)
    >>> fit(model, recipe, data, out="runs/cifar10").history["accuracy"][-1]
    """
    _check_model(model, recipe)
    devices = _devices.replicas(model)
    folder = None if out is None else Path(out)
    parts = _epoch_callbacks(folder, seed, max_minutes, tensorboard)
    classes = model.output_shape[-1]
    batches = training_batches(data, recipe, classes, seed)
    if validation_data is not None:
        size = recipe.batch_size
        validation_data = evaluation_batches(validation_data, size, classes)
    if devices > 1:
        _check_shares(recipe, validation_data, devices, steps_per_execution)
    steps = int(batches.cardinality())
    jit_compile = _devices.compilation(jit_compile, devices)
    _compile(model, recipe, steps, jit_compile, steps_per_execution)
    first = 0
    if folder:
        first = _resume(model, folder, _settings(model, recipe, seed, steps))
    for _ in range(first):  # the n-th iteration has the order of the n-th epoch
        next(iter(batches))
    training = batches.repeat()  # Keras makes one iterator then, else some per epoch
    if devices > 1:
        training, validation_data, of_shares = _shared(
            model, batches, validation_data, devices
        )
        parts = [*of_shares, *parts]
    with _devices.synchronized(model, devices):
        history = model.fit(
            training,
            steps_per_epoch=steps,
            epochs=recipe.epochs,
            initial_epoch=first,
            validation_data=validation_data,
            callbacks=[*parts, *callbacks],
            shuffle=False,  # the pipeline has done it
            verbose=verbose,
        )
    if folder:
        with _processes.copy_of_first(folder / _run_folder.LOG) as log:
            history.history = _run_folder.history(log)
        history.epoch = [int(epoch) for epoch in history.history.pop("epoch")]
    return history


def _resume(model: keras.Model, folder: Path, settings: dict[str, Any]) -> int:
    """Loads the last checkpoint, and returns how many epochs have been trained."""
    epochs = _processes.of_first(lambda: _run_folder.resume(folder, settings))
    if epochs:
        checkpoint = _run_folder.checkpoint(folder, epochs)
        with _processes.copy_of_first(checkpoint) as path, _processes.alone():
            model.load_weights(path)
    return epochs


def _check_shares(
    recipe: Recipe, validation: Any, devices: int, steps_per_execution: int
) -> None:
    check_divisible("`recipe.batch_size`", recipe.batch_size, devices)
    if validation is not None and int(validation.cardinality()) > 1:
        (size,) = (len(labels) for _, labels in validation.take(1))
        check_divisible("The batch size of `validation_data`", size, devices)
    if steps_per_execution > 1:  # the means before the last batch are not known then
        raise ValueError(
            "`steps_per_execution` must be 1 on several devices. "
            f"Received: steps_per_execution={steps_per_execution} on {devices} devices"
        )


def _shared(
    model: keras.Model, batches: Any, validation: Any, devices: int
) -> tuple[Any, Any, list[keras.callbacks.Callback]]:
    """The batches for several devices, and the callbacks that these need."""
    own = SharedBatches(batches, devices)
    tests = None if validation is None else SharedBatches(validation, devices)
    parts: list[keras.callbacks.Callback] = [_callbacks.LastBatch(own, tests)]
    training = own.data.repeat()
    if keras.backend.backend() == "tensorflow":
        begun = _callbacks.Begun()
        # Where one of the two leaves the size of the images open, the other has it.
        image = batches.element_spec[0].shape[1:].merge_with(model.input_shape[1:])
        shapes = ((devices, *image), (devices, model.output_shape[-1]))
        blank = tuple(np.zeros(shape, "float32") for shape in shapes)
        training = withheld(own.data, blank, begun.is_so)
        parts.append(begun)
    return training, None if tests is None else tests.data, parts


def _epoch_callbacks(
    folder: Path | None, seed: int, max_minutes: float | None, tensorboard: bool
) -> list[keras.callbacks.Callback]:
    parts = [_callbacks.EpochSeeds(seed), _callbacks.EpochSeconds()]
    if folder and _processes.is_first():
        parts.append(_callbacks.Record(folder))
        if tensorboard:
            parts.append(keras.callbacks.TensorBoard(folder / "tensorboard"))
    if max_minutes is not None:
        check_number("max_minutes", max_minutes)
        parts.append(_callbacks.TimeLimit(max_minutes))
    return parts


def _compile(
    model: keras.Model,
    recipe: Recipe,
    steps: int,
    jit_compile: bool | str,
    steps_per_execution: int,
) -> None:
    # Keras would take a part of the next epoch's data to fill the last execution.
    if steps % steps_per_execution:
        divisors = [n for n in range(1, 65) if steps % n == 0]
        raise ValueError(
            f"`steps_per_execution` must divide the {steps} steps of an epoch, as "
            f"{divisors} do. Received: steps_per_execution={steps_per_execution}"
        )
    model.compile(
        recipe.optimizer(steps),
        recipe.loss(),
        metrics=["accuracy"],
        jit_compile=jit_compile,
        steps_per_execution=steps_per_execution,
    )
    # Its variables are there before they are restored, and before the first step is
    # traced: else TensorFlow traces it twice.
    model.optimizer.build(model.trainable_variables)


def _settings(
    model: keras.Model, recipe: Recipe, seed: int, steps: int
) -> dict[str, Any]:
    """What a run must have in common with the one that it goes on with."""
    settings = {
        **dataclasses.asdict(recipe),
        "seed": seed,
        "steps_per_epoch": steps,
        "input_shape": model.input_shape,
        "parameters": [tuple(weight.shape) for weight in model.weights],
    }
    for layer in model.layers:
        if isinstance(layer, ScaleChannels):
            settings["sigma0"] = layer.sigma0
        if isinstance(layer, ScalePooling):
            one = len(settings.get("sigma0", ())) == 1  # all are the identity then
            settings["scale_pooling"] = "max" if one else layer.mode
    return settings


def _check_model(model: keras.Model, recipe: Recipe) -> None:
    shape = tuple(model.output_shape)
    if len(shape) != 2 or (shape[-1] or 0) < 2:
        raise ValueError(
            "`model` must return scores of shape (batch, class) for at least 2 "
            f"classes. Received: a model with the output shape {shape}"
        )
    wanted = recipe.scale_dropout
    for layer in model.layers:
        if isinstance(layer, ScalePooling) and wanted not in (None, layer.dropout):
            raise ValueError(
                f"`recipe` wants a scale dropout of {wanted:g}: build the model with "
                "`scale_dropout=recipe.scale_dropout`. "
                f"Received: model={model.name!r} with {layer.dropout:g}"
            )
