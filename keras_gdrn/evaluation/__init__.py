"""How a network does on objects of sizes that it was not trained on.

Pure functions from a trained model and test sets to arrays, on any backend; nothing is
drawn here (see `visualization`).
"""

from ._scale_generalisation import ScaleGeneralisation, scale_generalisation
from ._scale_selection import (
    ScaleSelectionHistogram,
    scale_selection_histogram,
    scale_shares,
)

__all__ = [
    "ScaleGeneralisation",
    "ScaleSelectionHistogram",
    "scale_generalisation",
    "scale_selection_histogram",
    "scale_shares",
]
