"""The iterations over a data set that shuffles itself: the n-th is the n-th epoch's."""

import warnings
import weakref
from typing import Any

from keras_gdrn.data._array_batches import is_renewable

# Data sets whose iterations were begun by a training that has not come to its end. How
# many were begun, nobody knows: they are read ahead.
_LEFT: weakref.WeakSet = weakref.WeakSet()


def begin(data: Any, resumed: bool) -> None:
    """Tells that a training iterates over data.

    Warns:
        UserWarning: If a run goes on by a `tf.data.Dataset`, not of this package, that
            an earlier call in this process has left in the middle.
    """
    if _is_own(data):
        return
    if resumed and data in _LEFT:
        warnings.warn(
            "`data` was left in the middle by an earlier training in this process, and "
            "its order goes on from there: the result will not be that of a run "
            "without interruption. Make the `tf.data.Dataset` anew before the call.",
            stacklevel=3,
        )
    _LEFT.add(data)


def end(data: Any) -> None:
    """Tells that a training had all its iterations, and has begun no other."""
    if not _is_own(data):
        _LEFT.discard(data)


def _is_own(data: Any) -> bool:
    """Whether each training has iterations of its own."""
    return isinstance(data, tuple) or is_renewable(data)
