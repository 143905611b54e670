"""Search for better networks by Keras Tuner, and what the networks cost."""

from keras_gdrn.tuning._cost import multiply_adds, parameters, search_cost
from keras_gdrn.tuning._hypermodel import GaussDerResNetHyperModel
from keras_gdrn.tuning._ray import search_on_ray
from keras_gdrn.tuning._report import plot_trials, report, trained_trials
from keras_gdrn.tuning._search_space import SearchSpace

__all__ = [
    "GaussDerResNetHyperModel",
    "SearchSpace",
    "multiply_adds",
    "parameters",
    "plot_trials",
    "report",
    "search_cost",
    "search_on_ray",
    "trained_trials",
]
