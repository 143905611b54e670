"""What counts as a number, and what a check refuses."""

import fractions
import math
import re

import numpy as np
import pytest

from keras_gdrn._checks import check_number, check_reach, is_integer, is_positive


def test_numbers():
    for value in (1, 2.5, np.float32(1.5), np.int64(3), fractions.Fraction(1, 3)):
        assert is_positive(value) and is_integer(value) == (value == int(value))
        check_number("x", value)
    for value in (0, -1, math.inf, math.nan, np.float32(-0.0)):
        assert not is_positive(value)
    check_number("x", 2, whole=True, lowest=2, highest=2)
    check_number("x", 10**400)  # more than a float holds
    check_number("x", 0)


@pytest.mark.parametrize(
    ("values", "limits", "expected"),
    [
        ((True, np.True_, "1", None, [1], 1j, -1, math.inf), {}, "a number >= 0"),
        ((True, 1.0), {"whole": True}, "an integer >= 0"),
        ((1, 4), {"lowest": 2, "highest": 3}, "a number >= 2 and <= 3"),
    ],
)
def test_limits(values, limits, expected):
    for value in values:
        message = f"`x` must be {expected}. Received: x={value!r}"
        with pytest.raises(ValueError, match=re.escape(message)):
            check_number("x", value, **limits)


def test_reach_is_refused_only_beyond_every_axis():
    for sigma, sizes in ((9.0, (8, 10)), (10.0, (8, 10)), (99.0, (8, None))):
        check_reach(sigma, sizes)
    message = r"^The .*`sigma`.*sigma=11 .*\(8, 10\) pixels$"
    with pytest.raises(ValueError, match=message):
        check_reach(11.0, (8, 10))
