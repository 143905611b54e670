"""One limit of the time, for the steps of several things."""

import time

import pytest

from keras_gdrn.training import TimeLimit


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand, in seconds."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_there_is_always_time_for_one_step(clock):
    limit = TimeLimit(1)
    clock[0] = 100.0
    assert not limit.is_reached()
    assert not limit.is_reached(50)
    limit.took(0.0)
    assert limit.is_reached()


def test_another_step_is_as_long_as_the_longest(clock):
    limit = TimeLimit(minutes=1)
    limit.took(25.0)
    limit.took(15.0)
    clock[0] = 34.0
    assert not limit.is_reached()
    clock[0] = 36.0
    assert limit.is_reached()
    assert not limit.is_reached(15.0)  # where the caller knows better


def test_without_a_limit(clock):
    limit = TimeLimit()
    limit.took(1e9)
    clock[0] = 1e9
    assert not limit.is_reached()


@pytest.mark.parametrize("minutes", [-1, "some", True, float("nan")])
def test_values_are_checked(minutes):
    with pytest.raises(ValueError, match=f"`max_minutes` must be .*={minutes!r}"):
        TimeLimit(minutes)
