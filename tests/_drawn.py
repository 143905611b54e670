"""Arbitrary layers and images, for Hypothesis to choose from."""

from typing import NamedTuple

import hypothesis
import numpy as np
from hypothesis import strategies as st

# By the number of spatial dimensions: few pixels in all.
MAX_SIZE = {1: 40, 2: 14, 3: 6}


def examples(count: int):
    """So many, the same each time, however slow the first of them is."""
    return hypothesis.settings(max_examples=count, deadline=None, derandomize=True)


class Case(NamedTuple):
    """A layer's arguments, and the shape of what it is applied to."""

    options: dict
    batch: int
    sizes: tuple[int, ...]
    channels: int

    def shape(self) -> tuple[int, ...]:
        if self.options["data_format"] == "channels_first":
            return (self.batch, self.channels, *self.sizes)
        return (self.batch, *self.sizes, self.channels)

    def images(self, seed: int = 0) -> np.ndarray:
        return np.random.default_rng(seed).uniform(-1, 1, self.shape())


def scales(highest: float = 8.0) -> st.SearchStrategy[float]:
    return st.floats(0.1, highest, allow_subnormal=False)


@st.composite
def cases(draw, dtypes=("float16", "bfloat16", "float32")) -> Case:
    dimensions = draw(st.integers(1, 3))
    size = st.integers(1, MAX_SIZE[dimensions])
    sizes = tuple(draw(st.lists(size, min_size=dimensions, max_size=dimensions)))
    options = {
        "filters": draw(st.integers(1, 3)),
        "sigma": draw(scales(1.2 * max(sizes))),
        "order": draw(st.integers(1, 4)),
        "zero_order": draw(st.booleans()),
        "separable": draw(st.booleans()),
        "trainable_sigma": draw(st.booleans()),
        "boundary": draw(st.sampled_from(["zero", "symmetric"])),
        "epsilon": draw(st.sampled_from([1e-6, 1e-3, 0.1])),
        "use_bias": draw(st.booleans()),
        "data_format": draw(st.sampled_from(["channels_last", "channels_first"])),
        "dtype": draw(st.sampled_from(dtypes)),
    }
    return Case(options, draw(st.integers(1, 3)), sizes, draw(st.integers(1, 3)))


def scale_sets() -> st.SearchStrategy[list[float]]:
    return st.lists(scales(2.0), min_size=1, max_size=4)
