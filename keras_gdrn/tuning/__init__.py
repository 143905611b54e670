"""Search for better networks by Keras Tuner, and what the networks cost."""

from ._compute import multiply_adds, parameters
from ._hypermodel import GaussDerResNetHyperModel
from ._report import plot_trials, report, trained_trials
from ._search_space import SearchSpace

__all__ = [
    "GaussDerResNetHyperModel",
    "SearchSpace",
    "multiply_adds",
    "parameters",
    "plot_trials",
    "report",
    "trained_trials",
]
