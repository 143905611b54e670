"""Hyperparameter search with Keras Tuner."""

try:
    import keras_tuner as _  # noqa: F401
except ImportError as error:
    raise ImportError(
        "`keras_gdrn.tuning` needs Keras Tuner: `pip install keras-tuner tensorboard`"
    ) from error

from keras_gdrn.tuning._hypermodel import GaussDerResNetHyperModel
from keras_gdrn.tuning._ray import search_on_ray
from keras_gdrn.tuning._search_space import Range, SearchSpace

__all__ = [
    "GaussDerResNetHyperModel",
    "Range",
    "SearchSpace",
    "search_on_ray",
]
