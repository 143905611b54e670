"""Which tests run on which backend."""

import keras
import pytest

BACKEND = keras.backend.backend()

tensorflow_only = pytest.mark.skipif(
    BACKEND != "tensorflow", reason="tf.function and SavedModel"
)
# It compiles every operation for every shape: what other tests cover stays out.
not_on_jax = pytest.mark.skipif(BACKEND == "jax", reason="minutes of compiling")
