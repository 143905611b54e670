"""Cases of a parametrized test."""

import keras


def cases(every, on_jax):
    """Every case; on JAX only these.

    Outside of compiled functions JAX compiles each operation for each shape. All cases
    would take minutes there, and meet the code that other backends have been through.
    """
    return on_jax if keras.backend.backend() == "jax" else every
