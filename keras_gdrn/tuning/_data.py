"""What `tuner.search` is given, as training and test data."""

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from keras_tuner.errors import FatalValueError

from keras_gdrn.evaluation._test_data import DivergedError
from keras_gdrn.training._batches import has_tensorflow


def _data_errors() -> tuple[type[Exception], ...]:
    """The errors that unfit data end with, at once or in a pipeline."""
    if not has_tensorflow():
        return (ValueError,)
    import tensorflow as tf

    return ValueError, tf.errors.InvalidArgumentError


@contextlib.contextmanager
def data_errors_are_fatal() -> Iterator[None]:
    """Ends the search by an error that would be that of every trial.

    Of another kind, it would be taken for a failed trial, and the search go on. Of a
    network that has diverged, the trial alone fails.
    """
    try:
        yield
    except _data_errors() as error:
        if isinstance(error.__cause__, DivergedError):
            raise
        raise FatalValueError(str(error)) from error


def refuse(others: Mapping[str, Any]) -> None:
    """Raises an error for what `keras.Model.fit` would take, and the recipe decides."""
    for name, value in others.items():
        raise ValueError(
            f"`{name}` must be left out: the recipe decides how networks are trained, "
            "and a search the batch size, which `SearchSpace(batch_size=(32,))` fixes. "
            "Possible are x, y, epochs, validation_data, validation_split, seed, "
            f"callbacks and verbose. Received: {name}={value!r}"
        )


def check_batches(data: Any, sizes: tuple[int, ...]) -> None:
    """Raises an error if the batches are made already, but their size is searched."""
    if not callable(data) and not isinstance(data, tuple) and len(sizes) > 1:
        raise ValueError(
            "The training data must be arrays, or a function from the size of a batch "
            f"to batches, where a search chooses from the sizes {sizes}; or fix it by "
            f"`SearchSpace(batch_size=(32,))`. Received: {type(data).__name__}"
        )


def training_and_tests(
    x: Any, y: Any, validation_data: Any, validation_split: float
) -> tuple[Any, Mapping[float, Any]]:
    """Training data as `training.fit` takes them, and test data by size factor."""
    if y is not None and (callable(x) or hasattr(x, "element_spec")):
        raise ValueError(
            f"`y` must be left out, as `x` has the labels. Received: x={x!r}"
        )
    data = x if y is None else (x, y)
    if (validation_data is None) == (not validation_split):
        raise ValueError(
            "`validation_data` or `validation_split` must be given, one of them: "
            "images that judge the trials. Received: "
            f"validation_split={validation_split!r} and "
            f"{'no' if validation_data is None else 'also'} validation_data"
        )
    if validation_split:
        data, validation_data = _split(data, validation_split)
    is_by_factor = isinstance(validation_data, Mapping)
    return data, validation_data if is_by_factor else {1.0: validation_data}


def _split(data: Any, share: float) -> tuple[tuple, tuple]:
    """The first images for training, the last ones, a share of all, for validation."""
    if not isinstance(data, tuple) or len(data) != 2:
        raise ValueError(
            "`validation_split` must be left out where the training data are no arrays "
            "of images and labels; give `validation_data` instead. "
            f"Received: {type(data).__name__}"
        )
    images, labels = data
    kept = math.floor(len(labels) * (1 - share))
    if not 0 < kept < len(labels):
        raise ValueError(
            "`validation_split` must be between 0 and 1, and leave images on both "
            f"sides. Received: validation_split={share!r} of {len(labels)} images"
        )
    return (images[:kept], labels[:kept]), (images[kept:], labels[kept:])
