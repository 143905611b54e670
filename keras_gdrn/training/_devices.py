"""Training on several devices, by Keras' own means on each backend."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, cast

import keras


def on_devices(count: int | str = "all") -> contextlib.AbstractContextManager:
    """A context in which models are built and trained on several GPUs.

    Each device has all weights and an equal share of every batch; loss, gradients and
    the statistics of batch normalization are those of the whole batch. A training epoch
    drops what cannot be divided equally: images beyond a multiple of the number of
    devices, and a smaller last batch. Validation counts each image once. On TensorFlow
    this is `tf.distribute.MirroredStrategy`, on JAX `keras.distribution.DataParallel`,
    on one machine. Without a GPU, the devices are the CPU's logical ones. JAX divides
    several scale channels by channel, if their number is a multiple of that of the
    devices.

    Args:
        count: Number of devices, or `"all"`. With 1, nothing is distributed.

    Returns:
        A context manager, in which to build the model and call `fit`.

    Raises:
        ValueError: If there are fewer devices, or the backend is not TensorFlow or JAX.

    Guarantee: in float32, a small network has the losses and weights of training on one
    device with the same batches, within 1e-5. The exception is dropout on TensorFlow,
    which is the same for each device's share of a batch.

    Example:

    >>> with on_devices("all"):
    ...     model = gauss_der_resnet((32, 32, 3), 10, (16, 32), 1.4, SIX_SCALES)
    ...     history = fit(model, RECIPES["rescaled_cifar10"], data)
    """
    backend = keras.backend.backend()
    if count == 1:
        return contextlib.nullcontext()
    can_share = backend in ("tensorflow", "jax")
    names = tuple(keras.distribution.list_devices()) if can_share else ()
    if not can_share or count not in ("all", *range(1, len(names) + 1)):
        raise ValueError(
            f"`count` must be 'all' or a number of devices out of {names}; "
            "several need the backend TensorFlow or JAX. "
            f"Received: count={count!r} on {backend}"
        )
    chosen = names if count == "all" else names[: int(count)]
    if len(chosen) == 1:
        return contextlib.nullcontext()
    if backend == "tensorflow":
        return _strategy(chosen).scope()
    return keras.distribution.DataParallel(devices=list(chosen)).scope()


def replicas(model: keras.Model) -> int:
    """The number of devices of a model, or an error if it was built for others."""
    distribution = cast(Any, keras.distribution.distribution())
    backend, devices, fits = keras.backend.backend(), 1, not distribution
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
        import jax

        if isinstance(distribution, keras.distribution.DataParallel):
            fits, devices = True, distribution.device_mesh.devices.size
        sets = (weight.value.sharding.device_set for weight in model.variables)
        fits &= all(len(devices_of) == devices for devices_of in sets)
        fits &= jax.process_count() == 1
    if not fits:
        raise ValueError(
            "`model` must be built, and `fit` called, under `on_devices(…)` with the "
            "same number of devices, on one machine. "
            "Received: a model built for others, several JAX processes, or "
            f"{distribution} on {backend}"
        )
    return devices


@contextlib.contextmanager
def synchronized(model: keras.Model, devices: int) -> Iterator[None]:
    """Makes batch normalization take its statistics over the batches of all devices.

    JAX always does. On TensorFlow it is an option of the layer, which is reset: with
    it, a saved model could not be loaded on other backends.
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


@functools.cache  # so a model can be built under one scope and trained under another
def _strategy(names: tuple[str, ...]) -> Any:
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(names)
