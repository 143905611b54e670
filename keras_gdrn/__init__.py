"""Scale-invariant Gaussian derivative residual networks for Keras 3."""

from keras_gdrn import layers, models

__version__ = "0.1.0"
__all__ = ["layers", "models"]
