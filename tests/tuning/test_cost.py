"""The estimate of a network's compute, against counts by hand."""

import keras
import pytest

from keras_gdrn.kernels import Samples, axis_factors
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.tuning import _cost, multiply_adds

WINDOW = Samples(8, influence=3.0)


def network(widths=(4, 6), sigma0=(1.0, 2.0), **options):
    return gauss_der_resnet((16, 16, 1), 3, widths, 1.5, sigma0, **options)


def layer_multiply_adds(sizes, channels, filters, sigma, leaving=None, **options):
    """Those of a layer on whole maps, or where only a window leaves it."""
    layer = GaussDerConv(filters, sigma, **options)
    layer.build((None, *sizes, channels))
    axes = [
        axis_factors(n, sigma, layer.order, "zero", 1e-3, None, leaving) for n in sizes
    ]
    return _cost.layer_multiply_adds(layer, axes)


SEPARABLE = {"separable": True, "zero_order": True}


@pytest.mark.parametrize(
    ("sizes", "options", "by_hand"),
    [
        # 16 pixels of 2 channels; along x orders 0, 1, 2, then the mix of 5 jets to 3
        # channels, then orders 0, 1, 2 along y.
        ((4, 4), {}, 3 * 4 * 16 * 2 + 5 * 16 * 2 * 3 + 3 * 4 * 16 * 3),
        ((4, 4), SEPARABLE, 6 * 4 * 16 * 2 + 6 * 16 * 2 + 16 * 2 * 3),
        (
            (10, 10),
            {"leaving": WINDOW},
            3 * 8 * 100 * 2 + 5 * 80 * 2 * 3 + 3 * 8 * 80 * 3,
        ),
    ],
    ids=["whole map", "separable", "window"],
)
def test_count_by_hand_at_full_rank(sizes, options, by_hand):
    assert layer_multiply_adds(sizes, 2, 3, 0.5, **options) == by_hand


def test_count_by_hand_at_a_fine_scale():
    """Two stencils and a 3×3 convolution of 2 to 3 channels."""
    taps = len(axis_factors(32, 0.5, 2, "zero", 1e-3).composed.smoothing.kernel)
    assert layer_multiply_adds((32, 32), 2, 3, 0.5) == 32**2 * 2 * (2 * taps + 9 * 3)


@pytest.mark.parametrize("options", [{}, SEPARABLE])
def test_count_by_hand_at_low_rank(options):
    rank = len(axis_factors(32, 6.0, 2, "zero", 1e-3).jets[0])
    assert rank < 12
    basis = rank * 32 * 32 + rank * rank * 32
    if options:
        by_hand = 2 * (basis + 3 * rank**3) * 2 + 6 * rank**2 * 2 + 32 * 32 * 2 * 3
    else:
        by_hand = (basis + 3 * rank**3) * (2 + 3) + 5 * rank**2 * 2 * 3
    assert layer_multiply_adds((32, 32), 2, 3, 6.0, **options) == by_hand


def test_windows_cost_less():
    small, half, whole = (
        multiply_adds(network(sigma0=(0.25, 0.5), receptive_field=extent))
        for extent in (2.0, 3.0, None)
    )
    assert small < half < whole
    assert small < 0.5 * whole


def test_projection_of_a_block_is_counted():
    # 1×1 at each of 256 pixels in both scale channels, where the width changes.
    layers = [(1, 4, 1.0), (4, 6, 1.5), (6, 6, 1.5), (6, 3, 2.25)]
    convolutions = sum(
        layer_multiply_adds((16, 16), channels, filters, sigma * sigma0)
        for channels, filters, sigma in layers
        for sigma0 in (1.0, 2.0)
    )
    whole = multiply_adds(network(receptive_field=None))
    assert whole == convolutions + 2 * 256 * 4 * 6


def test_example_of_the_documentation():
    model = gauss_der_resnet((64, 64, 3), 10, [16, 32], 1.2, [1.0, 2.0])
    assert str(multiply_adds(model)) in multiply_adds.__doc__


def test_models_that_cannot_be_counted():
    model = gauss_der_resnet((None, None, 1), 3, (4,), 1.5, (1.0,))
    with pytest.raises(ValueError, match=r"`model` .* known size.*\(None, None, None"):
        multiply_adds(model)
    image = keras.Input((8, 8, 1))
    with pytest.raises(ValueError, match=r"`model` must apply one `ScaleChannels`"):
        multiply_adds(keras.Model(image, keras.layers.Flatten()(image)))
