"""The precision of computations for which half precision is too low."""

import keras


def single_or_double(dtype) -> str:
    """Double precision for a double precision dtype, else single.

    `keras.backend.result_type` ignores JAX' float64, unless an environment variable
    enables it.
    """
    double = keras.backend.standardize_dtype(dtype) == "float64"
    return "float64" if double else "float32"
