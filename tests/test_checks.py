"""What counts as a number, and what a check refuses."""

import fractions
import math

import numpy as np
import pytest

from keras_gdrn._checks import (
    check_number,
    check_reach,
    is_integer,
    is_number,
    is_positive,
)


def test_numbers():
    for value in (1, 2.5, np.float32(1.5), np.int64(3), fractions.Fraction(1, 3)):
        assert is_number(value) and is_positive(value)
        assert is_integer(value) == (value == int(value))
    for value in (0, -1, math.inf, math.nan, np.float32(-0.0)):
        assert is_number(value) and not is_positive(value)
    for value in (True, np.True_, "1", None, [1], 1j):
        assert not (is_number(value) or is_integer(value) or is_positive(value))
        with pytest.raises(
            ValueError, match=r"`x` must be a number >= 0\. Received: x"
        ):
            check_number("x", value)


def test_limits():
    check_number("x", 2, whole=True, lowest=2, highest=3)
    check_number("x", 10**400)  # more than a float holds
    for value in (1, 4, 2.5):
        with pytest.raises(ValueError, match="an integer >= 2 and <= 3"):
            check_number("x", value, whole=True, lowest=2, highest=3)


def test_reach_is_refused_only_beyond_every_axis():
    check_reach(9.0, (8, 10))
    check_reach(10.0, (8, 10))
    check_reach(99.0, (8, None))
    message = r"^The .*`sigma`.*sigma=11 .*\(8, 10\) pixels$"
    with pytest.raises(ValueError, match=message):
        check_reach(11.0, (8, 10))
