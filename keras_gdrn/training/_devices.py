"""Which devices train a model, by Keras' own means on each backend."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, cast

import keras
import numpy as np


def on_devices(count: int | str = "all") -> contextlib.AbstractContextManager:
    """A context in which models are built and trained on several GPUs.

    Each device has all weights and an equal share of every batch; loss, gradients and
    the statistics of batch normalization are those of the whole batch. An epoch of
    training leaves out what cannot be shared out equally: images beyond a multiple of
    the number of devices, and a smaller last batch. Validation counts each image once.
    On TensorFlow this is `tf.distribute.MirroredStrategy`, on JAX
    `keras.distribution.DataParallel`, also of several machines that share the folder of
    the run: one process on each, which begins with
    `keras.distribution.initialize(address_of_first, processes, number)` and otherwise
    runs the same program. Where there is no GPU, the devices are the CPU's logical
    ones. JAX shares out several scale channels by channel, if their number is a
    multiple of that of the devices.

    Args:
        count: Number of devices, or `"all"`; of several machines `"all"`. With 1,
            nothing is distributed.

    Returns:
        A context manager, for the building of the model and for `fit`.

    Raises:
        ValueError: If there are not so many devices, or the backend is another.

    Guarantee: in float32, the losses of the epochs and the weights of a small network
    are those of one device, which is given the same batches, within 1e-5; but for
    dropout on TensorFlow, which is the same for each share of a batch.

    Example:

    >>> with on_devices("all"):
    ...     model = gauss_der_resnet((32, 32, 3), 10, (16, 32), 1.4)
    ...     history = fit(model, RECIPES["rescaled_cifar10"], data)
    """
    backend, (_, processes) = keras.backend.backend(), _process()
    if count == 1 and processes == 1:
        return contextlib.nullcontext()
    can_share = backend in ("tensorflow", "jax")
    names = tuple(keras.distribution.list_devices()) if can_share else ()
    numbers = range(1, len(names) + 1) if processes == 1 else ()
    if not can_share or count not in ("all", *numbers):
        raise ValueError(
            "`count` must be 'all' or, on one machine, that of some of the devices "
            f"{names}, and the backend TensorFlow or JAX, for several of them. "
            f"Received: count={count!r} on {backend}"
        )
    chosen = names if count == "all" else names[: int(count)]
    if len(chosen) == 1:
        return contextlib.nullcontext()
    if backend == "tensorflow":
        return _strategy(chosen).scope()
    # `fit` itself gives each process its share of the data.
    share = {"devices": list(chosen), "auto_shard_dataset": False}
    return keras.distribution.DataParallel(**share).scope()


def replicas(model: keras.Model) -> int:
    """How many devices train this model, or an error if it was built for others."""
    distribution = cast(Any, keras.distribution.distribution())
    backend, devices, (_, processes) = keras.backend.backend(), 1, _process()
    fits = processes == 1 and not distribution
    if backend == "tensorflow":
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        devices = strategy.num_replicas_in_sync
        distribution = distribution or type(strategy).__name__
        mirrored = isinstance(strategy, tf.distribute.MirroredStrategy)
        created = strategy.extended.variable_created_in_scope
        fits &= mirrored or not tf.distribute.has_strategy()
        fits &= all(created(weight.value) for weight in model.variables)
    elif backend == "jax":
        if isinstance(distribution, keras.distribution.DataParallel):
            fits = processes == 1 or not distribution.auto_shard_dataset
            devices = distribution.device_mesh.devices.size
        sets = (weight.value.sharding.device_set for weight in model.variables)
        fits &= all(len(devices_of) == devices for devices_of in sets)
    if not fits:
        raise ValueError(
            "Several devices, or processes, train a `model` that was built under "
            "`on_devices(…)` with the same number, under which `fit` is called too: on "
            "TensorFlow those of one machine, on JAX those of several. Received: a "
            f"model built for others, or {distribution} on {backend}, {processes} "
            "processes"
        )
    return devices


@contextlib.contextmanager
def synchronized(model: keras.Model, devices: int) -> Iterator[None]:
    """Batch normalization takes its statistics over the batches of all devices.

    So does JAX by itself. On TensorFlow it is an option of the layer, which is not
    kept: with it, a saved model could not be loaded on other backends.
    """
    kind, is_needed = keras.layers.BatchNormalization, devices > 1
    is_needed &= keras.backend.backend() == "tensorflow"
    layers = [part for part in model._flatten_layers() if isinstance(part, kind)]
    changed = [part for part in layers if is_needed and not part.synchronized]
    try:
        for layer in changed:
            layer.synchronized = True
        yield
    finally:
        for layer in changed:
            layer.synchronized = False


@functools.cache  # what is built under one scope can be trained under another
def _strategy(names: tuple[str, ...]) -> Any:
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(names)


def _process() -> tuple[int, int]:
    """The number of this process, from 0, and how many train together."""
    if keras.backend.backend() != "jax":
        return 0, 1
    import jax

    return jax.process_index(), jax.process_count()


def own_part(array: np.ndarray) -> np.ndarray:
    """Of several processes, this one's part of what they share."""
    number, count = _process()
    return np.split(array, count)[number]


def is_first_process() -> bool:
    """Whether this is the one of several JAX processes that decides and writes.

    Returns:
        Whether it is; it is, too, where there is only one process.
    """
    return _process()[0] == 0


def from_first_process(function: Callable[[], int]) -> int:
    """What a function returns in the first of several JAX processes.

    It is called only there, and all processes, which must come to this call, get the
    number: so they decide alike by what only the first one knows, such as its time.

    Args:
        function: Returns an integer >= 0, or whether something is so.

    Returns:
        The number.

    Raises:
        RuntimeError: In the other processes, if the function fails in the first one.

    Example:

    >>> is_complete = from_first_process(lambda: Path("runs/results.json").exists())
    """
    if _process()[1] == 1:
        return function()
    from jax.experimental import multihost_utils

    failed = result = -1
    try:
        if is_first_process():
            result = int(function())
    finally:
        result = int(multihost_utils.broadcast_one_to_all(np.array(result)))
    if result == failed:
        raise RuntimeError("The first process has failed: see its error.")
    return result
