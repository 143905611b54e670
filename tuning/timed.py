"""Tuners that keep to a time limit."""

import time


class OutOfTime(Exception):
    """There is no time for another trial; the same command goes on from there."""


class Timed:
    """A tuner that stops before a trial that would not end in time, and tells errors.

    At least one trial is run.
    """

    seconds = float("inf")
    longest = 0.0

    def on_search_begin(self):
        self.begun = time.perf_counter()
        super().on_search_begin()

    def pre_create_trial(self):
        spent = time.perf_counter() - self.begun
        if self.longest and spent + self.longest > self.seconds:
            raise OutOfTime

    def on_trial_begin(self, trial):
        self.trial_begun = time.perf_counter()
        super().on_trial_begin(trial)

    def on_trial_end(self, trial):
        self.longest = max(self.longest, time.perf_counter() - self.trial_begun)
        if trial.message:
            print(f"Trial {trial.trial_id} failed: {trial.message.splitlines()[-1]}")
        super().on_trial_end(trial)
