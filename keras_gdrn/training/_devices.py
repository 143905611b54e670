"""Which devices train a model, by Keras' own means on each backend."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, cast

import keras


def on_devices(count: int | str = "all") -> contextlib.AbstractContextManager:
    """A context in which models are built and trained on several GPUs.

    Each device has all weights and an equal share of every batch; loss, gradients and
    the statistics of batch normalization are those of the whole batch. An epoch of
    training leaves out what cannot be shared out equally: images beyond a multiple of
    the number of devices, and a smaller last batch. Validation counts each image once.
    On TensorFlow this is `tf.distribute.MirroredStrategy`, on JAX
    `keras.distribution.DataParallel`, of one machine. Where there is no GPU, the
    devices are the CPU's logical ones. JAX shares out several scale channels by
    channel, if their number is a multiple of that of the devices.

    Args:
        count: Number of devices, or `"all"`. With 1, nothing is distributed.

    Returns:
        A context manager, for the building of the model and for `fit`.

    Raises:
        ValueError: If there are not so many devices, or the backend is another.

    Guarantee: in float32, the losses of the epochs and the weights of a small network
    are those of one device, which is given the same batches, within 1e-5; but for
    dropout on TensorFlow, which is the same for each share of a batch.

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
            "`count` must be 'all' or that of some of the devices "
            f"{names}, and the backend TensorFlow or JAX, for several of them. "
            f"Received: count={count!r} on {backend}"
        )
    chosen = names if count == "all" else names[: int(count)]
    if len(chosen) == 1:
        return contextlib.nullcontext()
    if backend == "tensorflow":
        return _strategy(chosen).scope()
    return keras.distribution.DataParallel(devices=list(chosen)).scope()


def replicas(model: keras.Model) -> int:
    """How many devices train this model, or an error if it was built for others."""
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
            "Several devices of one machine train a `model` that was built under "
            "`on_devices(…)` with the same number, under which `fit` is called too. "
            "Received: a model built for others, several JAX processes, or "
            f"{distribution} on {backend}"
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
