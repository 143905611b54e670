"""The estimates of a network's compute and of a search, against counts by hand."""

import re

import keras
import keras_tuner
import pytest

from keras_gdrn.kernels import Samples, axis_factors
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import gauss_der_resnet, with_sigma0
from keras_gdrn.training import Recipe
from keras_gdrn.tuning import (
    GaussDerResNetHyperModel,
    SearchSpace,
    _cost,
    multiply_adds,
    search_cost,
)

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


@pytest.mark.parametrize(
    ("options", "by_hand"),
    [
        # 16 pixels of 2 channels; along x orders 0, 1, 2, then the mix of 5 jets to 3
        # channels, then orders 0, 1, 2 along y.
        ({}, 3 * 4 * 16 * 2 + 5 * 16 * 2 * 3 + 3 * 4 * 16 * 3),
        (
            {"separable": True, "zero_order": True},
            3 * 4 * 16 * 2 + 6 * 16 * 2 + 3 * 4 * 16 * 2 + 16 * 2 * 3,
        ),
    ],
)
def test_count_by_hand_at_full_rank(options, by_hand):
    assert layer_multiply_adds((4, 4), 2, 3, 0.5, **options) == by_hand


def test_count_by_hand_at_low_rank():
    rank = len(axis_factors(32, 6.0, 2, "zero", 1e-3).jets[0])
    assert rank < 12
    basis = rank * 32 * 32 + rank * rank * 32
    by_hand = (basis + 3 * rank**3) * (2 + 3) + 5 * rank**2 * 2 * 3
    assert layer_multiply_adds((32, 32), 2, 3, 6.0) == by_hand


def test_count_by_hand_of_a_window():
    by_hand = 3 * 8 * 100 * 2 + 5 * 80 * 2 * 3 + 3 * 8 * 80 * 3
    assert layer_multiply_adds((10, 10), 2, 3, 0.5, leaving=WINDOW) == by_hand


def test_windows_cost_less():
    large = {"sigma0": (0.25, 0.5)}
    costs = [
        multiply_adds(network(**large, receptive_field=extent))
        for extent in (2.0, 3.0, None)
    ]
    assert costs == sorted(costs)
    assert costs[0] < 0.5 * costs[-1]


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


ONE = SearchSpace(
    blocks=(1,), stem_width=(2,), width=(3,), sigma0_spacing=(2.0,)
).only()


@pytest.mark.parametrize(("single", "joint"), [(0, 4), (3, 1), (9, 0)])
def test_count_by_hand_of_a_search(single, joint, monkeypatch):
    monkeypatch.setattr(_cost, "_speed", lambda: 1e6)
    hypermodel = GaussDerResNetHyperModel(
        (12, 12, 1), 3, space=ONE, recipe=Recipe(4, 8), single_scale_epochs=single
    )
    model = hypermodel.build(keras_tuner.HyperParameters())
    passes = joint * multiply_adds(model)
    passes += (4 - joint) * multiply_adds(with_sigma0(model, [1.0]))
    text = search_cost(hypermodel, 50, trials=7)
    assert text.startswith("7 trials of 4 epochs over 50 images: ")
    assert f"{3 * 7 * 50 * passes:.1e} in all" in text
    minutes = float(re.search(r"take ([\d.]+) minutes", text)[1])
    assert minutes == pytest.approx(3 * 7 * 50 * passes / 1e6 / 60, abs=0.06)


def test_speed_of_this_machine():
    assert 1e8 < _cost._speed() < 1e15
