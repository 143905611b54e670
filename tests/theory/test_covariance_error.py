"""Where the error of kernels on the pixels comes from, as docs/theory.md says."""

import numpy as np
import pytest

from keras_gdrn import kernels
from tests.theory.assertions import scale_covariance_error
from tests.theory.images import AnalyticImage, magnified, sample
from tests.theory.networks import (
    array,
    at_scale,
    batch_normalizations,
    feature_maps,
    on_pixels,
    random_channel,
    with_statistics_of,
)

IMAGE = AnalyticImage()
# How much a first derivative answers to the wave that it passes best, ω = 1 / σ,
# relative to the exact derivative.
AT_THE_PEAK = {0.5: 0.53, 1.0: 0.88, 2.0: 0.97}


pytestmark = pytest.mark.seen_on_tensorflow("the kernels are the same")


def neutral():
    """Batch normalization has means near 0 and variances near 1."""
    return random_channel(boundary="symmetric")


def normalized():
    return with_statistics_of(neutral(), sample(IMAGE, 61))


def channel_error(channel, image, sigma0, size=61):
    maps = at_scale(feature_maps(channel), on_pixels)
    return scale_covariance_error(maps, image, sigma0, 2.0, size, crop=size // 8)


@pytest.mark.parametrize("sigma", AT_THE_PEAK)
def test_first_derivatives_at_fine_scales_answer_too_weakly(sigma):
    wave = np.exp(1j * (np.arange(401) - 200) / sigma)
    derivative = kernels.gaussian_derivative(sigma, 1, 200) @ wave
    exact = np.exp(-0.5)  # σω exp(-σ²ω²/2)
    share = np.abs(derivative) / exact
    np.testing.assert_allclose(share, AT_THE_PEAK[sigma], atol=0.005)


def test_normalization_multiplies_the_error():
    plain, network = neutral(), normalized()
    alone, all_layers = (channel_error(x, IMAGE, 1.0) for x in (plain, network))
    first, *others = batch_normalizations(network)
    branches = [x for x in others if x.name == "bn2"]
    faint, *weak = (np.median(array(x.moving_variance)) for x in (first, *branches))
    print(f"neutral statistics: {alone:.1%}, those of images: {all_layers:.1%}")
    print("variances of the first layer and the branches:", faint, weak)
    assert faint < 1e-3 and len(weak) == 8 and max(weak) < 0.2
    assert all_layers > 4 * alone


def test_a_finer_grid_reduces_the_error():
    """Twice the pixels and twice σ_0; twice the pixels alone are no remedy."""
    network, doubled = normalized(), magnified(IMAGE, 2)
    error = channel_error(network, IMAGE, 1.0)
    finer = channel_error(network, doubled, 2.0, size=121)
    pixels_alone = channel_error(network, doubled, 1.0, size=121)
    print(f"{error:.1%}, on a finer grid {finer:.1%}, at σ_0 = 1 {pixels_alone:.1%}")
    assert finer < error / 2
    assert pixels_alone > 2 * finer  # the counter-example
