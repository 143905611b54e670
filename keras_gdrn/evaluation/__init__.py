"""Evaluation on objects of sizes, and at positions, that were not trained on.

Pure functions from a trained model and test sets to arrays, on any backend;
`visualization` draws them.
"""

from keras_gdrn.evaluation._scale_generalization import (
    ScaleGeneralization,
    scale_generalization,
)
from keras_gdrn.evaluation._scale_selection import (
    ScaleSelectionHistogram,
    scale_selection_histogram,
    scale_shares,
)
from keras_gdrn.evaluation._shifts import shift_accuracies

__all__ = [
    "ScaleGeneralization",
    "ScaleSelectionHistogram",
    "scale_generalization",
    "scale_selection_histogram",
    "scale_shares",
    "shift_accuracies",
]
