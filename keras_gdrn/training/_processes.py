"""Several JAX processes that train one model: the first one decides and writes."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import numpy as np

_FAILED = -1


def count() -> int:
    """How many processes train together: on other backends than JAX, one."""
    if keras.backend.backend() != "jax":
        return 1
    import jax

    return jax.process_count()


def number() -> int:
    """Which of them this one is, counted from 0."""
    if count() == 1:
        return 0
    import jax

    return jax.process_index()


def is_first_process() -> bool:
    """Whether this is the one of several JAX processes that decides and writes.

    On other backends, and where there is one process, it is.

    Returns:
        Whether it is.
    """
    return number() == 0


def from_first_process(function: Callable[[], int]) -> int:
    """What a function returns in the first of several JAX processes.

    It is called only there. All processes must come to this call, and all of them get
    the number; so they decide alike by what only the first one knows, such as its
    files.

    Args:
        function: Returns an integer >= 0, or whether something is so.

    Returns:
        The number.

    Raises:
        RuntimeError: In the other processes, if the function fails in the first one.

    Example:

    >>> if from_first_process(lambda: Path("runs/results.json").exists()):
    ...     print("This run is complete.")
    """
    if count() == 1:
        return function()
    result = _FAILED
    try:
        if is_first_process():
            result = int(function())
    finally:
        result = int(_broadcast(np.array(result)))
    if result == _FAILED:
        raise RuntimeError("The first process has failed: see its error.")
    return result


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A context in which one process may save or load weights by itself.

    (To save, Keras makes a second optimizer and looks at its attributes. Under a
    distribution all processes make a variable together, and wait for one another.)
    """
    distribution = keras.distribution.distribution()
    if count() > 1:
        keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        if count() > 1:
            keras.distribution.set_distribution(distribution)


@contextlib.contextmanager
def copy_of_first(path: Path) -> Iterator[Path]:
    """A file of the first process, for all: they need not see one another's folders."""
    if count() == 1:
        yield path
        return
    size = from_first_process(lambda: path.stat().st_size)
    content = np.zeros(size, "uint8")
    if is_first_process():
        content = np.frombuffer(path.read_bytes(), "uint8")
    content = _broadcast(content)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(content.astype("uint8").tobytes())
        yield copy


def _broadcast(array: np.ndarray) -> np.ndarray:
    """What the first process has, in all of them."""
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.broadcast_one_to_all(array))
