"""Random numbers for the epochs of a data set."""

import itertools
from collections.abc import Iterator

import numpy as np


def epoch_generators(seed: int) -> Iterator[np.random.Generator]:
    """A generator of random numbers for each iteration over a data set, in turn.

    The n-th is the same whenever the seed is: neither what was drawn in the iterations
    before nor TensorFlow's global seed, on which `tf.data` depends, has a part in it.
    So a run that is interrupted can go on with its next epoch.
    """
    return (epoch_generator(seed, epoch) for epoch in itertools.count())


def epoch_generator(seed: int, epoch: int) -> np.random.Generator:
    """The generator of one epoch."""
    return np.random.default_rng([seed, epoch])
