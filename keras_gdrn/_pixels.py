"""The range of an image's values: from 0 to 1, or from 0 to 255.

`Preprocess`, `classify`, `read_image` and `read_h5` all use this rule. It looks at
values only, because Keras converts the inputs of a model to floating point.
"""

from typing import Any

import numpy as np

WHITE = 255.0
# Bicubic resizing overshoots: its negative weights sum to 1/8 along an axis, so that
# values of 0 to 1 can become -0.28 to 1.28.
MAX_UNDERSHOOT, MAX_OVERSHOOT = 0.3, 1.5
_BRIGHT = 8.0  # above any standardized pixel


def value_ranges(low: Any, high: Any, whole: Any) -> tuple[Any, Any]:
    """Whether images have values of 0 to 1, and whether of 0 to 255.

    Args:
        low, high: Lowest and highest value; numbers or tensors.
        whole: Whether all values are whole numbers.

    Returns:
        Two booleans. Both are false for other images, such as standardized ones. Both
        are true for images that contain only 0 and 1; these are read as 0 to 1.
    """
    # In units of white: LiteRT aborts if it compares in quantization steps of 1.
    low, high = low / WHITE, high / WHITE
    is_unit = (low >= -MAX_UNDERSHOOT / WHITE) & (high <= MAX_OVERSHOOT / WHITE)
    is_byte = whole & (low >= 0) & (high <= 1)
    is_resized = (low >= -MAX_UNDERSHOOT) & (high <= MAX_OVERSHOOT)
    is_resized = is_resized & (high >= _BRIGHT / WHITE)
    return is_unit, is_byte | (is_resized & ~whole)


def white(pixels: np.ndarray) -> float:
    """The value of white in an image, or in images of one range: 1 or 255.

    Raises:
        ValueError: If values are in neither range, or not numbers.
    """
    if pixels.dtype.kind not in "biuf":
        raise ValueError(f"values must be numbers. Received: the dtype {pixels.dtype}")
    low, high = np.min(pixels, initial=0), np.max(pixels, initial=0)
    is_unit, is_byte = value_ranges(low, high, np.bool_(_are_whole(pixels)))
    if not (is_unit or is_byte):  # NaN is in neither range
        raise ValueError(
            "values must be from 0 to 1 or from 0 to 255. "
            f"Received: values from {low:g} to {high:g}"
        )
    return 1.0 if is_unit else WHITE


def _are_whole(pixels: np.ndarray) -> bool:
    """Whether all values are whole numbers, checked in parts to save memory."""
    return pixels.dtype.kind != "f" or all(
        np.all(p == np.floor(p)) for p in np.atleast_1d(pixels)
    )
