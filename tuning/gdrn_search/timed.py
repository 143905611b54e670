"""Tuners that keep to a time limit."""

import time

from keras_gdrn.training import OutOfTime, TimeLimit


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
        self.limit.took(time.perf_counter() - self.trial_begun)
        if trial.message:
            print(f"Trial {trial.trial_id} failed: {trial.message.splitlines()[-1]}")
        super().on_trial_end(trial)
