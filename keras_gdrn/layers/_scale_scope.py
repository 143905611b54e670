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
        subpixel: Whether those with σ_0 < 1 look between the pixels.
        entering, leaving: The windows of the layer's input and output, where maps are
            packed (see `_windows`). `None` where they are whole maps, folded into the
            batch one scale after another.
    """

    scales: tuple[float, ...] = (1.0,)
    subpixel: bool = False
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


def whole_maps(spatial: tuple) -> Windows:
    """Windows as large as the maps, at the scales of the maps that a layer is given."""
    scope = _scope.get()
    return Windows(spatial, scope.scales, scope.subpixel)


def scale_scope(scales: tuple[float, ...], subpixel: bool = False):
    """Applies the layers called inside at several initial scales."""
    if _scope.get() is not _ALONE:
        raise ValueError(
            "`ScaleChannels` cannot be nested in another `ScaleChannels`: "
            f"the outer one is already applied at sigma0={current_scales()}."
        )
    return _within(Scope(scales, subpixel))


def between(entering: Windows | None, leaving: Windows | None):
    """Applies the layers called inside to maps of these windows."""
    scope = _scope.get()
    return _within(dataclasses.replace(scope, entering=entering, leaving=leaving))


@contextlib.contextmanager
def _within(scope: Scope) -> Iterator[None]:
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
