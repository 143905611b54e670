"""Which devices train a model, by Keras' own means on each backend."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from keras_gdrn.training import _processes


def on_devices(count: int | str = "all") -> contextlib.AbstractContextManager:
    """A context in which models are built and trained on several GPUs.

    Each device has all weights and an equal share of every batch; loss, gradients and
    the statistics of batch normalization are those of the whole batch. What cannot be
    shared out equally is left out of an epoch of training, and comes up in another
    one: of each batch the images beyond a multiple of the number of devices (44 of 45
    are trained on by two or four), and the last batch, which may be smaller.
    Validation counts each image once. On TensorFlow this is
    `tf.distribute.MirroredStrategy`, on JAX `keras.distribution.DataParallel`. Where
    there is no GPU, the devices are the logical ones of the CPU.

    On JAX, several scale channels are shared out by channel: unless their number is a
    multiple of that of the devices, each device computes all of them. There may be
    several machines: one process on each, which begins with
    `keras.distribution.initialize(address_of_first, processes, number)` and otherwise
    runs the same program.

    Args:
        count: Number of devices (of each machine), or `"all"`. With 1, nothing is
            distributed.

    Returns:
        A context manager, for the building of the model and for `fit`.

    Raises:
        ValueError: If there are not so many devices, or if the backend is neither
            TensorFlow nor JAX.

    Guarantee: in float32, the losses of the epochs and the weights of a small network
    are those of one device, which is given the same batches, within 1e-5. Only dropout
    draws other numbers on TensorFlow.

    Example:

    >>> with on_devices("all"):
    ...     model = gauss_der_resnet((32, 32, 3), 10, (16, 32), 1.4)
    ...     history = fit(model, RECIPES["rescaled_cifar10"], data)
    """
    if count == 1 and _processes.count() == 1:
        return contextlib.nullcontext()
    available = _available(count)
    most = min(map(len, available))
    if count not in ("all", *range(1, most + 1)):
        raise ValueError(
            f"`count` must be 'all' or a number from 1 to {most}, that of the devices "
            f"{available[0]}. Received: count={count!r}"
        )
    limit = None if count == "all" else int(count)
    chosen = tuple(name for names in available for name in names[:limit])
    if len(chosen) == 1:
        return contextlib.nullcontext()
    if keras.backend.backend() == "tensorflow":
        return _strategy(chosen).scope()
    # `fit` itself gives each process its share of the data.
    distribution = keras.distribution.DataParallel(
        devices=list(chosen), auto_shard_dataset=False
    )
    return distribution.scope()


def replicas(model: keras.Model) -> int:
    """How many devices train this model.

    Raises:
        ValueError: If it was built for others, or if Keras would not distribute it.
    """
    backend, distribution = keras.backend.backend(), keras.distribution.distribution()
    devices, built_here, is_ours = 1, True, distribution is None
    if backend == "tensorflow":
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        mirrored = isinstance(strategy, tf.distribute.MirroredStrategy)
        is_ours &= mirrored or not tf.distribute.has_strategy()
        distribution = distribution or type(strategy).__name__
        devices = strategy.num_replicas_in_sync
        created = strategy.extended.variable_created_in_scope
        built_here = all(created(weight.value) for weight in model.variables)
    elif backend == "jax":
        if isinstance(distribution, keras.distribution.DataParallel):
            is_ours = not distribution.auto_shard_dataset or _processes.count() == 1
            devices = distribution.device_mesh.devices.size
        is_ours &= distribution is not None or _processes.count() == 1
        sets = (weight.value.sharding.device_set for weight in model.variables)
        built_here = all(len(devices_of) == devices for devices_of in sets)
    if not is_ours:
        raise ValueError(
            "Several devices, or processes, train a model under `on_devices(…)`, on "
            "TensorFlow those of one machine, on JAX those of several. "
            f"Received: {distribution} on {backend}, {_processes.count()} processes"
        )
    if not built_here:
        raise ValueError(
            "`model` must be built for the devices that train it: build it, and call "
            "`fit`, under `on_devices(…)` with the same number. "
            "Received: a model that was built for others"
        )
    return devices


@contextlib.contextmanager
def synchronized(model: keras.Model, devices: int) -> Iterator[None]:
    """Batch normalization takes its statistics over the batches of all devices.

    So does JAX by itself. On TensorFlow it is an option of the layer, which is not
    kept: with it, a saved model could not be loaded on other backends.
    """
    layers = []
    if devices > 1 and keras.backend.backend() == "tensorflow":
        kind = keras.layers.BatchNormalization
        layers = [layer for layer in model._flatten_layers() if isinstance(layer, kind)]
    before = [layer.synchronized for layer in layers]
    try:
        for layer in layers:
            layer.synchronized = True
        yield
    finally:
        for layer, value in zip(layers, before, strict=True):
            layer.synchronized = value


def seed_generators(model: keras.Model) -> list[keras.Variable]:
    """The states of a model's random number generators, such as those of dropout."""
    variables = model.non_trainable_variables
    return [v for v in variables if v.name == "seed_generator_state"]


def seeds(state: keras.Variable) -> np.ndarray:
    """The state of a random number generator on each device, `(devices, 2)`.

    On JAX there is one state for the whole batch, as on one device.
    """
    return np.stack(list(map(keras.ops.convert_to_numpy, _on_each_device(state))))


def assign_seeds(state: keras.Variable, words: np.ndarray) -> None:
    """Gives a random number generator its state on each device."""
    for own, value in zip(_on_each_device(state), words, strict=True):
        own.assign(value.astype(state.dtype))


def _on_each_device(state: keras.Variable) -> list[Any]:
    if keras.backend.backend() != "tensorflow":
        return [state]
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    return list(strategy.experimental_local_results(state.value))


def _available(count: int | str) -> list[list[str]]:
    """The names of the devices of each process."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        list_devices = tf.config.list_logical_devices
        devices = list_devices("GPU") or list_devices("CPU")
        return [[device.name for device in devices]]
    if backend == "jax":
        import jax

        names = [[] for _ in range(jax.process_count())]
        for device in jax.devices():
            names[device.process_index].append(f"{device.platform}:{device.id}")
        return names
    raise ValueError(
        "Several devices train a model on the TensorFlow and JAX backends. "
        f"Received: count={count!r} on {backend}"
    )


@functools.cache  # what is built under one scope can be trained under another
def _strategy(names: tuple[str, ...]) -> Any:
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(names)
