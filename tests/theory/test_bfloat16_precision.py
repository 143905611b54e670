"""A layer in bfloat16 computes what it computes in float32."""

import keras
import numpy as np

from tests.theory.assertions import assert_close

SIGMAS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
BOUNDARIES = ["zero", "symmetric"]


def assert_precise_in_bfloat16(kind, images, *, tolerance, **options):
    """The layer under the policy mixed_bfloat16 is near that in float32.

    Args:
        kind: Class of the layer.
        tolerance: Largest relative error in the Euclidean norm.
    """
    error = bfloat16_error(kind, images, **options)
    assert_close(f"precise in bfloat16 ({options})", error, tolerance)


def bfloat16_error(kind, images, *, compiled=True, **options):
    keras.utils.set_random_seed(0)
    exact, rounded = (
        keras.Sequential([keras.Input(images.shape[1:]), kind(16, dtype=p, **options)])
        for p in ("float32", "mixed_bfloat16")
    )
    rounded.set_weights(exact.get_weights())
    expected, actual = (_responses(m, images, compiled) for m in (exact, rounded))
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def _responses(model, images, compiled):
    if not compiled:
        return np.asarray(keras.ops.cast(model(images), "float32"))
    model.compile(jit_compile=True)
    return np.asarray(model.predict(images, verbose=0)).astype("float32")
