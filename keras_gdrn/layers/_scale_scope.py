"""The one way in which a layer learns at which scales, and where, it is applied."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator

from keras_gdrn.layers._windows import Windows


@dataclasses.dataclass(frozen=True)
class Scope:
    """What `ScaleChannels` tells the layers of its network.

    Attributes:
        scales: Initial scales σ_0 of the maps, in order.
        entering, leaving: The windows of the layer's input and output, where maps are
            packed (see `_windows`). `None` where they are whole maps, folded into the
            batch one scale after another.
    """

    scales: tuple[float, ...] = (1.0,)
    entering: Windows | None = None
    leaving: Windows | None = None


_ALONE = Scope()
_scope: contextvars.ContextVar[Scope] = contextvars.ContextVar(
    "keras_gdrn_scope", default=_ALONE
)


def current_scales() -> tuple[float, ...]:
    """Initial scales σ_0 of the maps that a layer is given, in order."""
    return _scope.get().scales


def current_windows() -> tuple[Windows | None, Windows | None]:
    """Windows of the packed maps that a layer takes and gives, if they are packed."""
    scope = _scope.get()
    return scope.entering, scope.leaving


def scale_scope(scales: tuple[float, ...]):
    """Applies the layers called inside at several initial scales."""
    if _scope.get() is not _ALONE:
        raise ValueError(
            "`ScaleChannels` cannot be nested in another `ScaleChannels`: "
            f"the outer one is already applied at sigma0={current_scales()}."
        )
    return _within(Scope(scales))


def between(entering: Windows | None, leaving: Windows | None):
    """Applies the layers called inside to maps of these windows."""
    return _within(Scope(current_scales(), entering, leaving))


@contextlib.contextmanager
def _within(scope: Scope) -> Iterator[None]:
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
