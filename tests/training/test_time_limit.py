"""One limit of the time, for the steps of several things."""

import time

from keras_gdrn.training import TimeLimit


def test_there_is_time_for_one_step_and_others_as_long_as_the_longest(monkeypatch):
    clock = [0.0]  # that is set by hand, in seconds
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    limit, unlimited = TimeLimit(minutes=1), TimeLimit()
    clock[0] = 100.0
    assert not limit.is_reached()
    assert not limit.is_reached(50)
    for seconds in (25.0, 15.0):
        limit.took(seconds)
        unlimited.took(1e9)
    for clock[0], is_reached in ((34.0, False), (36.0, True)):
        assert limit.is_reached() == is_reached
        assert not limit.is_reached(15.0)  # where the caller knows better
        assert not unlimited.is_reached()
