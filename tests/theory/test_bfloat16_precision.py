"""A layer in bfloat16 computes what it computes in float32."""

import keras
import numpy as np
import pytest
from analytic_images import natural_images
from assertions import assert_close
from counter_examples import SmoothThenDifference

from keras_gdrn.layers import GaussDerConv

SIGMAS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


def assert_precise_in_bfloat16(kind, images, *, tolerance, **options):
    """The layer under the policy mixed_bfloat16 is near that in float32.

    Args:
        kind: Class of the layer.
        tolerance: Largest relative error in the Euclidean norm.
    """
    error = bfloat16_error(kind, images, **options)
    assert_close(f"precise in bfloat16 ({options})", error, tolerance)


def bfloat16_error(kind, images, **options):
    keras.utils.set_random_seed(0)
    exact, rounded = (
        keras.Sequential([keras.Input(images.shape[1:]), kind(16, dtype=p, **options)])
        for p in ("float32", "mixed_bfloat16")
    )
    rounded.set_weights(exact.get_weights())
    expected, actual = (_compiled_predictions(m, images) for m in (exact, rounded))
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def _compiled_predictions(model, images):
    # Compiled by XLA: TensorFlow's own products on a CPU cut bfloat16 off towards zero
    # instead of rounding, which costs more than twice the precision.
    model.compile(jit_compile=True)
    return np.asarray(model.predict(images, verbose=0)).astype("float64")


@pytest.mark.parametrize("boundary", ["zero", "symmetric"])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_within_one_percent(sigma, boundary):
    """On an image in [0, 1]: a constant of twice the standard deviation."""
    images = natural_images(64, offset=0.5)
    assert_precise_in_bfloat16(
        GaussDerConv, images, sigma=sigma, boundary=boundary, tolerance=1e-2
    )
