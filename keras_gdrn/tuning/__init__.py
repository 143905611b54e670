"""Search for better networks by Keras Tuner, and what a network costs."""

from keras_gdrn.tuning._cost import multiply_adds, parameters
from keras_gdrn.tuning._hypermodel import GaussDerResNetHyperModel
from keras_gdrn.tuning._ray import search_on_ray
from keras_gdrn.tuning._search_space import SearchSpace

__all__ = [
    "GaussDerResNetHyperModel",
    "SearchSpace",
    "multiply_adds",
    "parameters",
    "search_on_ray",
]
