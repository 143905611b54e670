"""Without a zero-order term in the first layer, a constant leaves no trace."""

import functools

import pytest

from tests._cases import cases
from tests.theory.images import natural_images
from tests.theory.invariance_assertions import assert_invariant_to_constants
from tests.theory.networks import (
    array,
    at_scale,
    feature_maps,
    random_channel,
    random_layer,
)

IMAGES = natural_images(96, offset=0.0)
LAYERS = [(1.0, 1), (1.0, 2), (2.0, 3), (6.0, 1), (6.0, 3), (6.0, 2)]
CHANNEL = {"widths": (8, 8, 8), "ratio": 1.2}


def responses(layer):
    return lambda images: array(layer(images))


@pytest.mark.parametrize(("sigma", "order"), cases(LAYERS, LAYERS[-1:]))
def test_everywhere_under_the_symmetric_boundary(sigma, order):
    layer = random_layer((96, 96, 3), sigma=sigma, order=order, boundary="symmetric")
    assert_invariant_to_constants(
        responses(layer), IMAGES, constant=1.0, tolerance=1e-5
    )


@pytest.mark.parametrize("sigma", cases([1.0, 2.0, 6.0], [2.0]))
def test_away_from_the_border_under_the_zero_boundary(sigma):
    layer = random_layer((96, 96, 3), sigma=sigma)
    assert_invariant_to_constants(
        responses(layer), IMAGES, constant=1.0, border=int(6 * sigma), tolerance=1e-2
    )


@pytest.mark.parametrize("zero_order", cases([False, True], [True]))
def test_network_whose_first_layer_has_no_zero_order(zero_order):
    """Higher layers may have it: no constant reaches them."""
    channel = random_channel(
        (96, 96, 3), boundary="symmetric", zero_order=zero_order, **CHANNEL
    )
    maps = functools.partial(at_scale(feature_maps(channel)), 1.0)
    assert_invariant_to_constants(maps, IMAGES, constant=1.0, tolerance=1e-4)


@pytest.mark.seen_on_tensorflow("the assertions are the same")
@pytest.mark.parametrize(
    "options", [{"zero_order": True, "boundary": "symmetric"}, {"boundary": "zero"}]
)
def test_zero_order_in_the_first_layer_and_a_border_are_counter_examples(options):
    maps = responses(random_layer((96, 96, 3), **options))
    with pytest.raises(AssertionError, match="not invariant to the constant"):
        assert_invariant_to_constants(maps, IMAGES, constant=1.0, tolerance=0.1)
