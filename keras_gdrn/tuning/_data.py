"""What `tuner.search` is given: Keras' arguments, or a message what to write instead.

An error of any other kind would be taken for a failed trial, and the search go on.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keras_tuner.errors import FatalTypeError, FatalValueError

from keras_gdrn.evaluation._test_data import DivergedError
from keras_gdrn.training._batches import data_errors

_INSTEAD = {
    "batch_size": "A search chooses it; `SearchSpace(batch_size=({},))` fixes it.",
    "shuffle": "The training images are always shuffled.",
}


def refuse(arguments: Mapping[str, Any]) -> None:
    """Raises an error for what `keras.Model.fit` would take, and the recipe decides."""
    for name, value in arguments.items():
        instead = _INSTEAD.get(name, "The recipe decides how networks are trained.")
        instead = instead.format(value)
        raise FatalTypeError(
            f"`{name}` must be left out. {instead} Possible are x, y, validation_data, "
            "validation_split, epochs, seed, callbacks and verbose. "
            f"Received: {name}={value!r}"
        )


def training_and_tests(
    x: Any, y: Any, validation_data: Any, validation_split: float
) -> tuple[Any, Mapping[float, Any]]:
    """Training data as `training.fit` takes them, and test data by size factor."""
    if y is not None and (callable(x) or hasattr(x, "element_spec")):
        raise FatalValueError(
            "`y` must be left out where `x` has the labels, or `x` be an array of "
            f"images. Received: x={x!r}"
        )
    data = x if y is None else (x, y)
    if (validation_data is None) == (not validation_split):
        raise FatalValueError(
            "`validation_data` or `validation_split` must be given, one of them: "
            "images that judge the trials. Received: "
            f"validation_split={validation_split!r} and "
            f"{'no' if validation_data is None else 'also'} validation_data"
        )
    if validation_split:
        data, validation_data = _split(data, validation_split)
    if isinstance(validation_data, Mapping):
        return data, validation_data
    return data, {1.0: validation_data}


def check_batches(data: Any, sizes: tuple[int, ...]) -> None:
    """Raises an error if the batches are made already, but their size is searched."""
    if not callable(data) and not isinstance(data, tuple) and len(sizes) > 1:
        raise FatalValueError(
            "The training data must be arrays, or a function from the size of a batch "
            f"to a `tf.data.Dataset`, where a search chooses from the sizes {sizes}; "
            "or fix it by `SearchSpace(batch_size=(32,))`. "
            f"Received: {type(data).__name__}"
        )


def check_objective(callbacks: Iterable[Any], found: Mapping[str, float]) -> None:
    """Raises an error, before the training, if a trial will not have the objective."""
    for callback in callbacks:
        tuner = getattr(callback, "tuner", None)  # of Keras Tuner's own
        if tuner is not None and not tuner.oracle.objective.has_value(found):
            raise FatalValueError(
                f"The objective must be of {', '.join(found)}; val_accuracy needs "
                "validation data of size factor 1, and the other names an "
                '`Objective`, such as `keras_tuner.Objective("val_mean_accuracy", '
                f'"max")`. Received: {tuner.oracle.objective}'
            )


@contextlib.contextmanager
def data_errors_are_fatal() -> Iterator[None]:
    """Ends the search by an error that would be that of every trial.

    Of a network that has diverged, the trial alone fails.
    """
    try:
        yield
    except data_errors() as error:
        if isinstance(error.__cause__, DivergedError):
            raise
        raise FatalValueError(str(error)) from error


def _split(data: Any, share: float) -> tuple[tuple, tuple]:
    """The first images for training, the last ones, a share of all, for validation."""
    if not isinstance(data, tuple) or len(data) != 2:
        raise FatalValueError(
            "`validation_split` must be left out where the training data are no arrays "
            "of images and labels; give `validation_data` instead. "
            f"Received: {type(data).__name__}"
        )
    images, labels = data
    kept = math.floor(len(labels) * (1 - share)) if 0 < share < 1 else 0
    if not 0 < kept < len(labels):
        raise FatalValueError(
            "`validation_split` must be between 0 and 1, and leave images on both "
            f"sides. Received: validation_split={share!r} of {len(labels)} images"
        )
    return (images[:kept], labels[:kept]), (images[kept:], labels[kept:])
