"""Tuners that keep to a time limit."""

import time


class OutOfTime(Exception):
    """There is no time for another trial; the same command goes on from there."""


class TimeLimit:
    """Tells whether another trial would end in time: as long as the longest so far.

    At least one trial is run.
    """

    def __init__(self, seconds: float = float("inf")):
        self.end = time.perf_counter() + seconds
        self.longest = 0.0

    def trial_took(self, seconds: float) -> None:
        self.longest = max(self.longest, seconds)

    def is_reached(self) -> bool:
        return bool(self.longest) and time.perf_counter() + self.longest > self.end


class Timed:
    """A tuner that stops before a trial that would not end in time, and tells errors.

    Its `limit` is to be set.
    """

    limit: TimeLimit

    def pre_create_trial(self):
        if self.limit.is_reached():
            raise OutOfTime("Out of time")

    def on_trial_begin(self, trial):
        self.trial_begun = time.perf_counter()
        super().on_trial_begin(trial)

    def on_trial_end(self, trial):
        self.limit.trial_took(time.perf_counter() - self.trial_begun)
        if trial.message:
            print(f"Trial {trial.trial_id} failed: {trial.message.splitlines()[-1]}")
        super().on_trial_end(trial)
