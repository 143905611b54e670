"""How batches get to Keras: by `tf.data`, or where there is none, by threads."""

import collections
import importlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras

from keras_gdrn.data._source import mapped, untuned
from keras_gdrn.training._batches import Batch, Batches
from keras_gdrn.training._recipe import Recipe
from keras_gdrn.training._sources import as_source

WORKERS = 4  # threads, where there is no `tf.data`


def training_batches(
    data: Any, recipe: Recipe, classes: int, *, seed: int = 0, epochs: int = 1
) -> Any:
    """The batches that `fit` trains on, for a look at them or for `keras.Model.fit`.

    Args:
        data, recipe, seed: As for `fit`.
        classes: Number of outputs of the model; 1 for one score of two classes.
        epochs: How many epochs follow each other.

    Returns:
        A `tf.data.Dataset` of images `(N, H, W, C)`, labels `(N, classes)` and, if
        there are any, weights `(N,)`, all float32; where TensorFlow is not installed, a
        `keras.utils.PyDataset` of the same arrays.

    Raises:
        ValueError: As `fit`, for unfit data.

    Example:

    >>> data = training_batches(rescaled("digits", "train"), Recipe(1, 32), classes=10)
    >>> data.element_spec[1].shape
    TensorShape([None, 10])
    """
    batches = Batches(
        as_source(data),
        recipe.batch_size,
        (None,) * 4,
        classes,
        augmentation=recipe.augmentation,
        seed=seed,
    )
    return pipeline(batches, 0, epochs * batches.steps)


def pipeline(batches: Batches, first: int = 0, count: int | None = None) -> Any:
    """So many batches from a step on, or without end, made ahead of their use.

    At the end of one of known length, Keras begins another iteration, for nothing.
    """

    def make() -> Iterator[Batch]:
        is_stream = batches.is_stream
        made = batches.stream(first) if is_stream else ahead(batches.batch, first)
        return itertools.islice(made, count)

    if not has_tensorflow():
        return _InOrder(make, count)
    import tensorflow as tf

    spec = [tf.TensorSpec(shape, dtype) for shape, dtype in batches.signature]
    if batches.is_stream:
        data: tf.data.Dataset = tf.data.Dataset.from_generator(
            make, output_signature=tuple(spec)
        )
        data = untuned(data)
    else:
        data = untuned(
            tf.data.Dataset.counter(first).take(-1 if count is None else count)
        )
        data = mapped(data, batches.batch, spec)
    if count is not None:
        data = data.apply(tf.data.experimental.assert_cardinality(count))
    return data.prefetch(tf.data.AUTOTUNE)


class _InOrder(keras.utils.PyDataset):
    """Batches that are asked for one after the other, each time from the first on."""

    def __init__(self, make: Callable[[], Iterator[Batch]], count: int | None):
        super().__init__()
        self.make, self.count = make, count

    @property
    def num_batches(self) -> int | None:
        return self.count

    def __getitem__(self, number: int) -> Batch:
        if number == 0:
            self.batches = self.make()
        return next(self.batches)


def ahead(function: Callable[[int], Batch], first: int) -> Iterator[Batch]:
    """What a function makes of each number, some of them ahead, in other threads."""
    with ThreadPoolExecutor(WORKERS) as pool:
        waiting = collections.deque()
        for number in itertools.count(first):
            waiting.append(pool.submit(function, number))
            if len(waiting) > WORKERS:
                yield waiting.popleft().result()


def has_tensorflow() -> bool:
    """Whether TensorFlow can be imported: batches are made by `tf.data` then."""
    try:
        importlib.import_module("tensorflow")
    except ImportError:
        return False
    return True


def data_errors() -> tuple[type[Exception], ...]:
    """The errors that unfit data end with, at once or in a pipeline."""
    if not has_tensorflow():
        return (ValueError,)
    import tensorflow as tf

    return ValueError, tf.errors.InvalidArgumentError
