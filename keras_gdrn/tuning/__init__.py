"""Search for better networks by Keras Tuner."""

from keras_gdrn.tuning._hypermodel import GaussDerResNetHyperModel, parameters
from keras_gdrn.tuning._ray import search_on_ray
from keras_gdrn.tuning._search_space import Range, SearchSpace

__all__ = [
    "GaussDerResNetHyperModel",
    "Range",
    "SearchSpace",
    "parameters",
    "search_on_ray",
]
