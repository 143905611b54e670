"""What the values of an image mean: from 0 to 1, or from 0 to 255.

This is the one rule of all that takes images: `Preprocess`, `classify`, `read_image`
and `read_h5`. It looks at values alone, as Keras makes floating-point numbers of
whatever a model is given.
"""

from typing import Any

import numpy as np

WHITE = 255.0
# Resizing oversteps the range: the negative weights of the cubic sum to 1/8 along an
# axis, so that values of 0 to 1 become those of -0.28 to 1.28.
BELOW, ABOVE = 0.3, 1.5
_BRIGHT = 8.0  # more than standardized pixels have


def kinds(low: Any, high: Any, whole: Any) -> tuple[Any, Any]:
    """Whether images have values of 0 to 1, and whether of 0 to 255.

    Args:
        low, high: Lowest and highest value; numbers or tensors.
        whole: Whether all values are whole numbers.

    Returns:
        Two truth values. Both are false for images that are neither, such as
        standardized ones; both are true for images of the values 0 and 1 alone, which
        are read as 0 to 1.
    """
    is_unit = (low >= -BELOW) & (high <= ABOVE)
    is_byte = whole & (low >= 0) & (high <= WHITE)
    is_resized = (low >= -BELOW * WHITE) & (high >= _BRIGHT) & (high <= ABOVE * WHITE)
    return is_unit, is_byte | (is_resized & ~whole)


def white(pixels: np.ndarray) -> float:
    """The value of white in an image or in images of one kind: 1 or 255.

    Raises:
        ValueError: If values are of neither kind, or not numbers.
    """
    if pixels.dtype.kind not in "biuf":
        raise ValueError(f"values must be numbers. Received: the dtype {pixels.dtype}")
    low, high = np.min(pixels, initial=0), np.max(pixels, initial=0)
    is_unit, is_byte = kinds(low, high, np.bool_(_are_whole(pixels)))
    if not (is_unit or is_byte):  # nor where there is a NaN
        raise ValueError(
            "values must be from 0 to 1 or from 0 to 255. "
            f"Received: values from {low:g} to {high:g}"
        )
    return 1.0 if is_unit else WHITE


def _are_whole(pixels: np.ndarray) -> bool:
    """Whether all are whole numbers; part by part, so that intermediates stay small."""
    return pixels.dtype.kind != "f" or all(
        np.all(p == np.floor(p)) for p in np.atleast_1d(pixels)
    )
