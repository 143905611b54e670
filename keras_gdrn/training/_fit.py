"""Training by a recipe, with a log and checkpoints, resumed after interruptions."""

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_gdrn._checks import check_number
from keras_gdrn.training import _checkpoint, _devices
from keras_gdrn.training._batches import Batches, pipeline
from keras_gdrn.training._callbacks import Run
from keras_gdrn.training._checkpoint import State
from keras_gdrn.training._model import check_model, comparable_config, make_variables
from keras_gdrn.training._recipe import Recipe, as_recipe
from keras_gdrn.training._run_folder import claim_folder, lock_folder
from keras_gdrn.training._sources import as_class_weight, as_source


def fit(
    model: keras.Model,
    recipe: Recipe | str,
    data: Any,
    *,
    validation_data: Any = None,
    out: str | os.PathLike | None = None,
    seed: int = 0,
    checkpoint_minutes: float = 10.0,
    class_weight: Mapping[int, float] | None = None,
    jit_compile: bool | str = "auto",
    check_finite: bool = True,
    callbacks: Sequence[keras.callbacks.Callback]
    | keras.callbacks.Callback
    | None = None,
    verbose: int | str = "auto",
) -> keras.callbacks.History:
    """Compile a classifier and train it by a recipe.

    With a folder `out`, each epoch ends with a row in `log.csv` and a checkpoint of the
    weights and the optimizer; long epochs also have checkpoints in between. On SIGTERM,
    as of `timeout 20m` or a cluster's scheduler, one is written before the process
    exits. After any interruption, the same call resumes from the last checkpoint. The
    result is that of a run without interruption, bit by bit where the backend is
    deterministic. The call returns at once if all epochs are done, or if a callback
    such as `EarlyStopping` has stopped the training; the model then has the weights
    that the callback left.

    For mixed precision, build the model under
    `keras.config.set_dtype_policy("mixed_bfloat16")`. For several GPUs, build it and
    call `fit` under `on_devices("all")`.

    Args:
        model: A functional model from images `(batch, H, W, C)` to scores `(batch,
            class)`.
        recipe: A `Recipe`, or the name of one of `RECIPES`.
        data: Arrays `(images, labels)` or `(images, labels, weights)`; what `rescaled`
            or `stir` return; or a data set of single images read by index, `data[n]`,
            such as those of PyTorch and grain. These are shuffled with `seed` and make
            batches of the recipe's size. Or batches with their own order and size:
            another `tf.data.Dataset`, a `keras.utils.PyDataset` or an iterable with a
            length, such as PyTorch's `DataLoader`; a resumed run skips trained steps.
            Images are floats in [0, 1]; labels are integers `(batch,)` or `(batch, 1)`,
            or one-hot. Weights `(batch,)`, finite and >= 0, weight the images in the
            loss and the accuracy.
        validation_data: The same, not shuffled; evaluated after each epoch.
        out: Folder of the run, created if needed.
        seed: Random seed of shuffling, augmentation and dropout. For the initial
            weights, see `keras.utils.set_random_seed`.
        checkpoint_minutes: Epochs that take longer have checkpoints in between.
        class_weight: Dictionary from classes, numbered from 0, to weights, as for
            `keras.Model.fit`, instead of weights of the images. Others weigh 1.
        jit_compile: As for `keras.Model.compile`; not `True` on several devices of
            TensorFlow.
        check_finite: Whether to raise an error after an epoch whose loss or weights are
            not finite. In either case the last good checkpoint is kept.
        callbacks: One or more Keras callbacks, except those that set the learning rate,
            which is the recipe's. Their state is not restored.
        verbose: As for `keras.Model.fit`: 1 is a progress bar, 2 a line for each epoch.

    Returns:
        The history of this call or, with `out`, of the whole run, with the `seconds` of
        each epoch.

    Raises:
        ValueError: If an argument is invalid, for instance labels that are no classes
            of the model, or a model that was built for other devices.
        FileExistsError: If `out` holds a run of other settings, network, precision
            or images, or has lost its checkpoint. (Data that come as batches
            are compared by their number and shapes only.)
        BlockingIOError: If another process is using `out`.
        OSError: If the checkpoint in `out` is damaged, or the disk is full.
        FloatingPointError: If the loss or a weight is not finite, and `check_finite`.

    Example:

    >>> data = rescaled("cifar10", "train")
    >>> history = fit(architecture("rescaled_cifar10"), "rescaled_cifar10", data)
    """
    check_model(model)
    recipe = as_recipe(recipe)
    check_number("seed", seed, whole=True)
    check_number("checkpoint_minutes", checkpoint_minutes)
    devices, classes = _devices.replicas(model), model.output_shape[-1]
    shared = recipe.batch_size, model.input_shape, classes, devices
    batches = Batches(as_source(data), *shared, recipe.augmentation, seed)
    class_weight = as_class_weight(class_weight, classes)
    others = _checked_callbacks(callbacks)
    options: dict[str, Any] = {"class_weight": class_weight, "verbose": verbose}
    if validation_data is not None:
        tests = Batches(as_source(validation_data), *shared)
        options |= {"validation_data": pipeline(tests), "validation_steps": tests.steps}
    recipe.compile(model, batches.steps, jit_compile)
    make_variables(model)
    with contextlib.ExitStack() as held:
        held.enter_context(_devices.synchronized(model, devices))
        state, folder = State(), None
        if out is not None:
            folder = Path(out)
            decided = _settings(model, recipe, batches, class_weight)
            held.enter_context(lock_folder(folder))
            claim_folder(folder, decided)
            state = _checkpoint.resume(model, folder)
        run = Run(seed, batches.steps, state, folder, checkpoint_minutes, check_finite)
        options["callbacks"] = [run, *others]
        if not state.stopped and state.step < recipe.epochs * batches.steps:
            held.enter_context(run.saved_when_terminated())
            _train(model, batches, state.step, recipe.epochs, options)
            run.finish()
    return _checkpoint.history(state.rows)


def _train(
    model: keras.Model, batches: Batches, done: int, epochs: int, options: dict
) -> None:
    """Trains from a step on, to the end of the last epoch."""
    steps, model.stop_training = batches.steps, False
    # Keras' epochs have equal numbers of steps: the rest of one takes a separate call.
    bounds = sorted({done, done + -done % steps, epochs * steps})
    for first, end in itertools.pairwise(bounds):
        if not model.stop_training:
            model.fit(
                pipeline(batches, first),
                steps_per_epoch=min(steps, end - first),
                initial_epoch=first // steps,
                epochs=end // steps,
                shuffle=False,  # the pipeline has shuffled
                **options,
            )


def _checked_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    """The callbacks in a list, or an error that Keras would raise late in training."""
    listed = keras.tree.flatten([callbacks or ()])
    rates = keras.callbacks.ReduceLROnPlateau, keras.callbacks.LearningRateScheduler
    for callback in listed:
        if not isinstance(callback, keras.callbacks.Callback):
            raise ValueError(
                f"`callbacks` must be Keras callbacks. Received: {callback!r}"
            )
        if isinstance(callback, rates):
            raise ValueError(
                "`callbacks` must not set the learning rate: set it in `Recipe`, or "
                "compile the model with another optimizer and use `model.fit`. "
                f"Received: callbacks with a {type(callback).__name__}"
            )
    return listed


def _settings(
    model: keras.Model, recipe: Recipe, batches: Batches, class_weight: Any
) -> dict[str, Any]:
    """What a run must have in common with one that it resumes."""
    return {
        **dataclasses.asdict(recipe),
        "batch_size": batches.size,
        "seed": batches.seed,
        "class_weight": class_weight or {},
        "steps_per_epoch": batches.steps,
        "data": batches.source.fingerprint(),
        "weights": [f"{w.shape}, {w.trainable}" for w in model.weights],
        "architecture": comparable_config(model),
    }
