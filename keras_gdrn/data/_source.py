"""Images that are read by index, so that any batch can be made at any time."""

import functools
import importlib
import itertools
import math
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Union

import keras
import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf

# Images read at a time where the caller asks for single ones.
CHUNK = 256


class ArraySource:
    """Images, labels and optional sample weights, in arrays."""

    def __init__(self, *arrays: np.ndarray):
        counts = [len(array) for array in arrays]
        if not all(counts) or len(set(counts)) > 1:
            raise ValueError(
                "Images, labels and any weights must be equally many, at least one. "
                f"Received: arrays of lengths {counts}"
            )
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def take(self, index: Any) -> tuple[np.ndarray, ...]:
        """The images at these indices, their labels and any weights."""
        return tuple(array[index] for array in self.arrays)

    def fingerprint(self) -> Any:
        """What identifies the images, for JSON."""
        flat = [np.ascontiguousarray(array).reshape(-1) for array in self.arrays]
        sums = [f"{zlib.crc32(array.view('uint8').data):08x}" for array in flat]
        pairs = zip(self.arrays, sums, strict=True)
        return [f"{array.dtype}{list(array.shape)} {of}" for array, of in pairs]


def generator(key: tuple[int, int], stream: int = 0) -> np.random.Generator:
    """One of many independent streams of random numbers of a key.

    Args:
        key: Two integers, such as a seed and the number of an epoch.
        stream: 0 for the order of an epoch, `step + 1` for the batch of a step.
    """
    words = [int(part) % 2**64 for part in key]
    return np.random.Generator(
        np.random.Philox(key=np.array(words, "uint64"), counter=[0, stream, 0, 0])
    )


@functools.lru_cache(2)  # each step of an epoch needs it
def order(seed: int, epoch: int, count: int) -> np.ndarray:
    """The order of `count` images in an epoch."""
    return generator((seed, epoch)).permutation(count)


def as_dataset(
    source: ArraySource, batch_size: int | None, shuffle: bool, seed: int
) -> Union["tf.data.Dataset", keras.utils.PyDataset]:
    """Batches of a source, or single images; reshuffled in each iteration if wanted.

    `fit` reads the attribute `source` instead, so that it can start at any batch.
    """
    if not has_tensorflow():
        return SourceBatches(source, batch_size or 1, shuffle, seed)
    import tensorflow as tf

    epochs, count, size = itertools.count(), len(source), batch_size or CHUNK

    def numbers() -> Iterator[np.ndarray]:
        epoch = next(epochs)
        chosen = order(seed, epoch, count) if shuffle else np.arange(count)
        for start in range(0, count, size):
            yield chosen[start : start + size]

    data = tf.data.Dataset.from_generator(
        numbers, output_signature=tf.TensorSpec((None,), "int64")
    )
    example = source.take(np.arange(1))
    signature = [tf.TensorSpec((None, *a.shape[1:]), a.dtype) for a in example]
    data = mapped(untuned(data), source.take, signature)
    if batch_size is None:
        data = data.unbatch()
    steps = math.ceil(count / (batch_size or 1))
    data = data.apply(tf.data.experimental.assert_cardinality(steps))
    data = data.prefetch(tf.data.AUTOTUNE)
    data.source = source  # type: ignore[attr-defined]
    return data


class SourceBatches(keras.utils.PyDataset):
    """The same batches where TensorFlow is not installed."""

    def __init__(self, source: ArraySource, size: int, shuffle: bool, seed: int):
        super().__init__()
        self.source, self.size, self.epoch = source, size, 0
        self.order = functools.partial(order, seed, count=len(source))
        self.shuffle = shuffle

    @property
    def num_batches(self) -> int:
        return math.ceil(len(self.source) / self.size)

    def __getitem__(self, number: int) -> tuple[np.ndarray, ...]:
        if not 0 <= number < self.num_batches:  # which ends an iteration
            raise IndexError(f"batch {number} of {self.num_batches}")
        rows = slice(number * self.size, (number + 1) * self.size)
        return self.source.take(self.order(self.epoch)[rows] if self.shuffle else rows)

    def on_epoch_end(self) -> None:
        self.epoch += 1


def has_tensorflow() -> bool:
    """Whether TensorFlow can be imported: `tf.data` makes the batches then."""
    try:
        importlib.import_module("tensorflow")
    except ImportError:
        return False
    return True


def mapped(
    data: "tf.data.Dataset", function: Callable[..., tuple], signature: list[Any]
) -> "tf.data.Dataset":
    """Applies a NumPy function to each element, several at a time, in order."""
    import tensorflow as tf

    def call(*parts: "tf.Tensor") -> tuple:
        made: Any = tf.numpy_function(
            function, parts, [spec.dtype for spec in signature], stateful=False
        )
        for part, spec in zip(made, signature, strict=True):
            part.set_shape(spec.shape)
        return tuple(made)

    # AutoGraph would need a second or two to convert the function, for nothing.
    call = tf.autograph.experimental.do_not_convert(call)
    return data.map(call, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)


def untuned(data: "tf.data.Dataset") -> "tf.data.Dataset":
    """Turns off autotuning for a pipeline and for those made from it.

    Now and then the tuning thread misses that the iterator is released. The release
    then waits for up to a minute until the thread wakes up. Without autotuning, each
    step of a pipeline uses as many threads as there are processors.
    """
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    return data.with_options(options)
