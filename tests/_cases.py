"""Cases of a parametrized test."""

import keras
import pytest


def cases(every, on_jax):
    """Every case; on JAX only these.

    Outside of compiled functions JAX compiles each operation for each shape. All cases
    would take minutes there, and meet the code that other backends have been through.
    """
    return on_jax if keras.backend.backend() == "jax" else every


def slowly(every, slow):
    """Every case; these are left to `make test-slow`."""
    marks = {name: [pytest.mark.slow] for name in slow}
    return [pytest.param(name, marks=marks.get(name, [])) for name in every]
