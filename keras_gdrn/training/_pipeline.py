"""How batches get to Keras: by `tf.data`, or where there is none, by threads."""

import collections
import importlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras

from keras_gdrn.data._source import mapped, untuned
from keras_gdrn.training._batches import Batch, EvaluationBatches
from keras_gdrn.training._sources import BatchStream

WORKERS = 4  # threads, where there is no `tf.data`


def pipeline(
    batches: EvaluationBatches, first: int, end: int, *, ends: bool = True
) -> Any:
    """The batches of the steps from `first` to `end`, made ahead of their use.

    Args:
        batches: What makes them.
        first, end: Numbers of steps.
        ends: Whether a `tf.data.Dataset` tells its length. At its end, Keras then
            begins another iteration.

    Returns:
        A `tf.data.Dataset` or, where TensorFlow is not installed, a
        `keras.utils.PyDataset` of the same arrays.
    """
    is_stream = isinstance(batches.source, BatchStream)

    def make() -> Iterator[Batch]:
        if is_stream:
            return batches.stream(first, end)
        return ahead(batches.batch, range(first, end))

    if not has_tensorflow():
        return _InOrder(make, end - first)
    import tensorflow as tf

    spec = [tf.TensorSpec(shape, dtype) for shape, dtype in batches.signature]
    if is_stream:
        data: tf.data.Dataset = tf.data.Dataset.from_generator(
            make, output_signature=tuple(spec)
        )
        data = untuned(data)
    else:
        data = untuned(tf.data.Dataset.range(first, end))
        data = mapped(data, batches.batch, spec)
    if ends:
        data = data.apply(tf.data.experimental.assert_cardinality(end - first))
    else:
        always = tf.autograph.experimental.do_not_convert(lambda *_: True)
        data = data.take_while(always)
    return data.prefetch(tf.data.AUTOTUNE)


class _InOrder(keras.utils.PyDataset):
    """Batches that are asked for one after the other, each time from the first on."""

    def __init__(self, make: Callable[[], Iterator[Batch]], count: int):
        super().__init__()
        self.make, self.count = make, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Batch:
        if number == 0:
            self.batches = self.make()
        return next(self.batches)


def ahead(function: Callable[[int], Batch], numbers: Iterable[int]) -> Iterator[Batch]:
    """What a function makes of each number, some of them ahead, in other threads."""
    with ThreadPoolExecutor(WORKERS) as pool:
        waiting: collections.deque = collections.deque()
        for number in numbers:
            waiting.append(pool.submit(function, number))
            if len(waiting) > WORKERS:
                yield waiting.popleft().result()
        while waiting:
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
