"""Precisions by name: what Keras stores and computes in, and how JAX multiplies."""

import contextlib
from collections.abc import Iterator

import jax
import keras

# Keras' policy and JAX' precision of products. On a CPU, TF32 is float32.
PRECISIONS = {
    "float32": ("float32", "highest"),
    "TF32": ("float32", "tensorfloat32"),
    "bfloat16": ("mixed_bfloat16", "default"),
    "float16": ("mixed_float16", "default"),
}


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    """Layers made and functions compiled inside compute in this precision.

    Args:
        name: A key of `PRECISIONS`, or "float64".
    """
    policy, products = PRECISIONS.get(name, ("float64", "highest"))
    double = policy == "float64"
    before = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_floatx("float64" if double else "float32")
    keras.config.set_dtype_policy(policy)
    try:
        with jax.default_matmul_precision(products), jax.enable_x64(double):
            yield
    finally:
        keras.config.set_floatx(before[1])
        keras.config.set_dtype_policy(before[0])
