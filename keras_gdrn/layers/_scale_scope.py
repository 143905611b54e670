"""The one way in which a layer learns at which initial scales it is applied."""

import contextlib
import contextvars
from collections.abc import Iterator

_scales: contextvars.ContextVar[tuple[float, ...] | None] = contextvars.ContextVar(
    "keras_gdrn_scales", default=None
)


def current_scales() -> tuple[float, ...]:
    """Initial scales σ_0 of the equal parts that the batch consists of, in order."""
    return _scales.get() or (1.0,)


@contextlib.contextmanager
def scale_scope(scales: tuple[float, ...]) -> Iterator[None]:
    """Applies the layers called inside to a batch of `len(scales)` equal parts."""
    if _scales.get() is not None:
        raise ValueError(
            "`ScaleChannels` cannot be nested in another `ScaleChannels`: "
            f"the outer one is already applied at sigma0={current_scales()}."
        )
    token = _scales.set(scales)
    try:
        yield
    finally:
        _scales.reset(token)
