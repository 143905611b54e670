"""Former names of public things: they work on, with a warning."""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def former_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` that finds what has another name today.

    Args:
        module: `__name__` of the module.
        names: Today's name by the former one.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        now = names[name]
        message = f"`{module}.{name}` is called `{now}` today"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], now)

    return find
