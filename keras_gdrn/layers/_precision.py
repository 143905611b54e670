"""In which precision a layer computes what its own would spoil."""

import keras


def single_or_double(dtype) -> str:
    """Double precision for what has it, else single.

    `keras.backend.result_type` knows nothing of JAX' float64, unless an environment
    variable has enabled it.
    """
    double = keras.backend.standardize_dtype(dtype) == "float64"
    return "float64" if double else "float32"
