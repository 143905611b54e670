"""The one way in which a layer learns at which scales, and where, it is applied."""

import contextlib
import contextvars
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import keras

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
        trace: What is being compiled where the scope was entered, if anything. A
            function that is compiled on its own, within the network, would keep these
            scales for all others.
    """

    scales: tuple[float, ...] = (1.0,)
    subpixel: bool = False
    entering: Windows | None = None
    leaving: Windows | None = None
    trace: Any = None


_ALONE = Scope()
_scope: contextvars.ContextVar[Scope] = contextvars.ContextVar(
    "keras_gdrn_scope", default=_ALONE
)


def current_scope() -> Scope:
    """How a layer is applied.

    Raises:
        ValueError: If the layer is called in a function that is compiled on its own.
    """
    scope = _scope.get()
    if scope.trace is not None and scope.trace != _trace():
        raise ValueError(
            "A layer inside `ScaleChannels` is called in a function that is compiled "
            "on its own (`tf.function`, `jax.jit`): it would keep the scales of its "
            "first call at all others. Call the layer outside of it, or compile the "
            f"whole model. Received: sigma0={scope.scales}"
        )
    return scope


def current_scales() -> tuple[float, ...]:
    """Initial scales σ_0 of the maps that a layer is given, in order."""
    return current_scope().scales


def current_windows() -> tuple[Windows | None, Windows | None]:
    """Windows of the packed maps that a layer takes and gives, if they are packed."""
    scope = current_scope()
    return scope.entering, scope.leaving


def whole_maps(spatial: tuple) -> Windows:
    """Windows as large as the maps, at the scales of the maps that a layer is given."""
    scope = current_scope()
    return Windows(spatial, scope.scales, scope.subpixel)


def scale_scope(scales: tuple[float, ...], subpixel: bool = False, building=False):
    """Applies the layers called inside at several initial scales.

    Args:
        scales: Initial scales σ_0.
        subpixel: Whether those with σ_0 < 1 look between the pixels.
        building: Whether only shapes are asked for, which Keras finds by compiling.
    """
    if _scope.get() is not _ALONE:
        raise ValueError(
            "`ScaleChannels` cannot be nested in another `ScaleChannels`: "
            f"the outer one is already applied at sigma0={_scope.get().scales}."
        )
    return _within(Scope(scales, subpixel, trace=None if building else _trace()))


def between(entering: Windows | None, leaving: Windows | None):
    """Applies the layers called inside to maps of these windows."""
    scope = _scope.get()
    return _within(dataclasses.replace(scope, entering=entering, leaving=leaving))


class ScaledLayer(keras.layers.Layer):
    """A layer that does something else at another scale."""

    def rematerialized_call(self, layer_call, *args, **kwargs):
        # It is called again in the backward pass, when the scope has been left.
        return super().rematerialized_call(_bound(layer_call), *args, **kwargs)


def _bound(call: Callable) -> Callable:
    scope = _scope.get()

    @functools.wraps(call)
    def in_scope(*args, **kwargs):
        with _within(dataclasses.replace(scope, trace=scope.trace and _trace())):
            return call(*args, **kwargs)

    return in_scope


def _trace() -> Any:
    """What is being compiled: a graph of TensorFlow, or a state of JAX."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        graph: Any = (
            tf.compat.v1.get_default_graph() if tf.inside_function() else "eager"
        )
        # Branches and bodies of loops are graphs within that of a function.
        while hasattr(graph, "outer_graph") and type(graph).__name__ != "FuncGraph":
            graph = graph.outer_graph
        return graph
    if keras.backend.backend() == "jax":
        import jax.extend.core

        return jax.extend.core.get_opaque_trace_state(convention="nnx")
    return None


@contextlib.contextmanager
def _within(scope: Scope) -> Iterator[None]:
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
