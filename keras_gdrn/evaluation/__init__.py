"""How a network does on objects of sizes that it was not trained on.

Pure functions from a trained model and test sets to arrays, on any backend; nothing is
drawn here (see `visualization`).
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

__all__ = [
    "ScaleGeneralization",
    "ScaleSelectionHistogram",
    "scale_generalization",
    "scale_selection_histogram",
    "scale_shares",
]
