"""A limit of the time for what is done step by step."""

import math
import time

from keras_gdrn._checks import check_number


class OutOfTime(Exception):
    """There is no time for another step; the same command goes on from there."""


class TimeLimit:
    """Tells whether another step, such as an epoch or a trial, would end in time.

    There is always time for one.

    Args:
        minutes: Minutes from now on; `None` for no limit.

    Raises:
        ValueError: If `minutes` is negative or not a number.

    Example:

    >>> limit = TimeLimit(minutes=60)
    >>> for stage, recipe in enumerate(recipes):
    ...     fit(model, recipe, data, out=f"runs/{stage}", max_minutes=limit)
    """

    def __init__(self, minutes: float | None = None):
        if minutes is not None:
            check_number("max_minutes", minutes)
        seconds = math.inf if minutes is None else 60 * minutes
        self.end = time.perf_counter() + seconds
        self.longest: float | None = None

    def took(self, seconds: float) -> None:
        """A step has taken so many seconds."""
        self.longest = max(self.longest or 0.0, seconds)

    def is_reached(self, seconds: float | None = None) -> bool:
        """Whether a step of so many seconds, or as the longest, would end too late."""
        if self.longest is None:
            return False
        expected = self.longest if seconds is None else seconds
        return time.perf_counter() + expected > self.end


def as_time_limit(minutes: float | TimeLimit | None) -> TimeLimit:
    """A limit as it is, or one of so many minutes from now on."""
    return minutes if isinstance(minutes, TimeLimit) else TimeLimit(minutes)
