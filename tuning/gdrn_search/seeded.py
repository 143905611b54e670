"""Tuners whose trials do not depend on one another's random numbers."""

import keras
import numpy as np


class Seeded:
    """A tuner that seeds each trial by its number.

    A trial that is run again draws the same numbers, and so does another process.
    """

    def run_trial(self, trial, *args, seed, **kwargs):
        of_trial = np.random.SeedSequence([seed, int(trial.trial_id)])
        keras.utils.set_random_seed(int(of_trial.generate_state(1)[0]))
        return super().run_trial(trial, *args, seed=seed, **kwargs)
