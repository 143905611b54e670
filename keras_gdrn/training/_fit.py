"""Training by a recipe, with a log and checkpoints, resumed after interruptions."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_gdrn.data._array_batches import renewed
from keras_gdrn.training import (
    _callbacks,
    _devices,
    _iterations,
    _log,
    _processes,
    _run_folder,
)
from keras_gdrn.training._batches import (
    check_size_of_images,
    evaluation_batches,
    training_batches,
    weighted,
)
from keras_gdrn.training._checkpoint import checkpoint
from keras_gdrn.training._compile import check_model, checked_class_weight, compile_by
from keras_gdrn.training._lock import lock_folder
from keras_gdrn.training._recipe import Recipe
from keras_gdrn.training._recipes import as_recipe
from keras_gdrn.training._settings import settings
from keras_gdrn.training._shares import (
    filled_batches,
    recipe_on,
    repeated,
    whole_batches,
)
from keras_gdrn.training._time_limit import TimeLimit, as_time_limit


def fit(
    model: keras.Model,
    recipe: Recipe | str,
    data: Any,
    *,
    validation_data: Any = None,
    out: str | os.PathLike | None = None,
    seed: int = 0,
    max_minutes: float | TimeLimit | None = None,
    class_weight: Mapping[int, float] | None = None,
    jit_compile: bool | str = "auto",
    steps_per_execution: int = 1,
    check_finite: bool = True,
    tensorboard: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: int | str = "auto",
) -> keras.callbacks.History:
    """Compile a classifier and train it by a recipe.

    With a folder `out`, each epoch ends with a row in `log.csv` and a checkpoint of
    the weights and of the optimizer; the same call goes on after the last whole epoch,
    whenever and however it was interrupted, and returns at once if all epochs are
    done. Shuffling, augmentation and dropout are seeded by the epoch, so that the
    result is that of a run without interruption, bit by bit where the backend is
    deterministic.

    Mixed precision is a matter of the model: build it under
    `keras.config.set_dtype_policy("mixed_bfloat16")`. So are several GPUs: build it,
    and call `fit`, under `on_devices("all")`. Each then trains on an equal share of
    every batch; images that cannot be shared out come up in another epoch. Of several
    processes on JAX, all get the same data and prepare whole batches; only the first
    one reads and writes `out`.

    Args:
        model: A functional model from images `(batch, H, W, C)` to scores `(batch,
            class)`, or to one score `(batch, 1)`, positive for class 1 and negative for
            class 0. (This package's networks need an output for each of two classes:
            their last layer ends in ReLU.)
        recipe: A `Recipe`, or the name of one of `RECIPES`.
        data: Arrays `(images, labels)` or `(images, labels, weights)`, or a
            `tf.data.Dataset` of such batches that shuffles them itself, such as
            `rescaled(…, batch_size=recipe.batch_size, shuffle=True)`. (One of your own
            is to be made anew before a call that goes on in the same process, or what
            is left of its order differs.) Images are floats in [0, 1]; labels are
            integers `(batch,)` or `(batch, 1)`, or one-hot. Weights `(batch,)` are
            those of the images, in the loss and the accuracy.
            Arrays need no TensorFlow: where it is not installed, the same batches are
            made by NumPy.
        validation_data: The same, not shuffled; evaluated after each epoch.
        out: Folder of the run, made if need be.
        seed: Seed of shuffling, augmentation and dropout. The weights were drawn
            before: see `keras.utils.set_random_seed`.
        max_minutes: Stop after an epoch if another one would not end within so many
            minutes; at least one is trained. The history is then shorter, and the same
            call goes on. Several calls may share a `TimeLimit`.
        class_weight: Weight of each class, as for `keras.Model.fit`; it multiplies the
            weights of the images, if there are any.
        jit_compile, steps_per_execution: As for `keras.Model.compile`. The number of
            steps of an epoch must be a multiple of `steps_per_execution`. On several
            devices, TensorFlow takes neither `jit_compile=True` nor several steps.
        check_finite: Whether to stop by an error after an epoch whose loss or weights
            are not finite. If `False`, training goes on. In either case the last
            checkpoint with finite weights is kept.
        tensorboard: Whether to write `out/tensorboard` too.
        callbacks: Further Keras callbacks. Their state is not restored.
        verbose: As for `keras.Model.fit`: 1 is a progress bar, 2 a line for an epoch.

    Returns:
        The history of this call; with `out`, of the whole run, as it is in the log.

    Raises:
        ValueError: If an argument does not fit, for instance labels that are no
            classes of the model, or a model that was built for other devices.
        FileExistsError: If `out` holds another run: other settings, another network,
            precision or backend, or other arrays; or if its log is damaged. (Of a
            `tf.data.Dataset` only the shapes and the number of batches are known.)
        BlockingIOError: If another process is at work in `out`.
        OSError: If the checkpoint in `out` is damaged or of another run, or there is no
            space left for one.
        FloatingPointError: If the loss or a weight is not finite, unless `check_finite`
            is `False`.
        RuntimeError: In all but the first of several processes, if that has failed.

    Example:

    >>> model = architecture("rescaled_cifar10")
    >>> recipe = RECIPES["rescaled_cifar10"]
    >>> data = rescaled("cifar10", "train", batch_size=45, shuffle=True)
    >>> fit(model, recipe, data, out="runs/cifar10").history["accuracy"][-1]
    """
    check_model(model)
    recipe = as_recipe(recipe)
    devices = _devices.replicas(model)
    folder = None if out is None else Path(out)
    parts = _epoch_callbacks(folder, seed, max_minutes, tensorboard, check_finite)
    class_weight = checked_class_weight(class_weight, model.output_shape[-1])
    shared = recipe_on(devices, recipe)
    batches, tests = _batches(model, recipe, data, validation_data, seed, devices)
    batches = weighted(batches, class_weight)
    steps = len(batches)
    jit_compile = _devices.compilation(jit_compile, steps_per_execution, devices)
    compile_by(model, shared, steps, jit_compile, steps_per_execution)
    with contextlib.ExitStack() as held:
        first = 0
        if folder:
            options = {"seed": seed, "steps": steps, "class_weight": class_weight}
            decided = settings(model, shared, data, **options)
            first = _resume(model, folder, decided, held)
        _iterations.begin(data, resumed=0 < first < recipe.epochs)
        training, of_epochs = repeated(batches, model, devices, first, recipe.epochs)
        with _devices.synchronized(model, devices):
            history = model.fit(
                training,
                steps_per_epoch=steps,
                epochs=recipe.epochs,
                initial_epoch=first,
                validation_data=tests,
                callbacks=[*of_epochs, *parts, *callbacks],
                shuffle=False,  # the pipeline has done it
                verbose=verbose,
            )
        if not model.stop_training:
            _iterations.end(data)
        if folder:
            with _processes.copy_of_first(folder / _log.LOG) as log:
                history.history = _log.history(log)
            history.epoch = [int(epoch) for epoch in history.history.pop("epoch")]
    return history


def _batches(
    model: keras.Model, recipe: Recipe, data: Any, tests: Any, seed: int, devices: int
) -> tuple[Any, Any]:
    """The batches of training and of validation, for so many devices."""
    classes = model.output_shape[-1]
    batches = training_batches(renewed(data), recipe, classes, seed)
    check_size_of_images("data", batches, model.input_shape)
    if tests is not None:
        tests = evaluation_batches(tests, recipe.batch_size, classes)
        check_size_of_images("validation_data", tests, model.input_shape)
    if devices == 1:
        return batches, tests
    if tests is not None:
        tests = filled_batches(tests, devices)
    return whole_batches(batches, devices), tests


def _resume(
    model: keras.Model,
    folder: Path,
    decided: dict[str, Any],
    held: contextlib.ExitStack,
) -> int:
    """Loads the last checkpoint, and returns how many epochs have been trained.

    The first process keeps the folder until `held` is closed.
    """

    def epochs_there() -> int:
        held.enter_context(lock_folder(folder))
        return _run_folder.resume(folder, decided)

    epochs = _processes.from_first_process(epochs_there)
    if epochs:
        file = checkpoint(folder, epochs)
        with _processes.copy_of_first(file) as path, _processes.alone():
            model.load_weights(path)
    return epochs


def _epoch_callbacks(
    folder: Path | None,
    seed: int,
    max_minutes: float | TimeLimit | None,
    tensorboard: bool,
    check_finite: bool,
) -> list[keras.callbacks.Callback]:
    parts = [_callbacks.EpochSeeds(seed), _callbacks.EpochSeconds()]
    if check_finite:
        parts.append(_callbacks.FiniteLoss())
    if folder and _processes.is_first_process():
        parts.append(_callbacks.Record(folder))
        if tensorboard:
            parts.append(keras.callbacks.TensorBoard(folder / "tensorboard"))
    if max_minutes is not None:
        parts.append(_callbacks.StopInTime(as_time_limit(max_minutes)))
    return parts
