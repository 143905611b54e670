"""Scale-invariant Gaussian derivative residual networks for Keras 3."""

import importlib
from typing import TYPE_CHECKING, Any

from keras_gdrn import layers, models

if TYPE_CHECKING:
    from keras_gdrn import (
        commands,
        data,
        evaluation,
        kernels,
        training,
        tuning,
        visualization,
    )

__version__ = "0.1.0"
__all__ = [
    "commands",
    "data",
    "evaluation",
    "kernels",
    "layers",
    "models",
    "training",
    "tuning",
    "visualization",
]


def __getattr__(name: str) -> Any:
    """Imports the modules other than `layers` and `models` on first use."""
    if name in __all__:
        return importlib.import_module(f"keras_gdrn.{name}")
    raise AttributeError(f"module 'keras_gdrn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
