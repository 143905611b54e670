"""Checks of what a user passes."""

import math
import numbers
from typing import Any


def check_number(
    name: str,
    value: Any,
    *,
    whole: bool = False,
    lowest: float = 0,
    highest: float = math.inf,
) -> None:
    """Raises an error that names the argument unless `value` is within the limits."""
    kind = numbers.Integral if whole else numbers.Real
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if not fits or not lowest <= float(value) <= highest or float(value) == math.inf:
        what = "an integer" if whole else "a number"
        limit = "" if highest == math.inf else f" and <= {highest:g}"
        raise ValueError(
            f"`{name}` must be {what} >= {lowest:g}{limit}. Received: {name}={value!r}"
        )
