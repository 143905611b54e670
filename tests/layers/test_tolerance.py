"""One tolerance: windows, ranks and sampling follow from it."""

import keras
import numpy as np
import pytest

from keras_gdrn.kernels import Samples
from keras_gdrn.layers import GaussDerConv, ScaleChannels, SpatialSelection
from keras_gdrn.layers._windows import Accuracy, Windows, cubic_interpolation
from keras_gdrn.models import scale_channel
from tests.layers._contract import numpy, randomize

pytestmark = pytest.mark.seen_on_tensorflow("the plan is made by Python and NumPy")

SCALES = (1.0, 2.0, 4.0)


def images():
    return np.random.default_rng(0).random((2, 48, 48, 2), dtype="float32")


def channels(network, *arguments, **options):
    layer = ScaleChannels(network, SCALES, *arguments, **options)
    layer.build((None, 48, 48, 2))
    return layer


def scores(*arguments, **options):
    return numpy(channels(*arguments, **options)(images()))


@pytest.fixture(scope="module")
def network():
    network = scale_channel((48, 48, 2), 3, [6, 6, 6], 1.4)
    randomize(network)
    return network


# What follows from the arguments

OTHERS = {
    "max": lambda: scale_channel((48, 48, 2), 3, [6, 6], 1.4, spatial_selection="max"),
    "maps": lambda: keras.Sequential([GaussDerConv(3, 2.0), GaussDerConv(3, 3.0)]),
    "learned": lambda: keras.Sequential(
        [GaussDerConv(3, 2.0, trainable_sigma=True), SpatialSelection()]
    ),
}
GIVEN = [
    ("center", {}, (2.5, 0.0439)),
    ("center", {"tolerance": "fast"}, (2.5, 0.0439)),
    ("center", {"tolerance": "exact"}, (0.0, 0.0)),
    ("center", {"tolerance": 0.01}, (3.035, 0.01)),
    ("center", {"receptive_field": 3.0, "tolerance": "exact"}, (3.0, 0.0)),
    ("center", {"receptive_field": 3.0}, (3.0, 0.0111)),
    ("center", {"receptive_field": 2.0, "tolerance": 0.01}, (2.0, 0.01)),
    ("center", {"receptive_field": None}, (0.0, 0.0)),
    ("center", {"receptive_field": None, "tolerance": 0.01}, (0.0, 0.01)),
    ("max", {}, (0.0, 0.0439)),
    ("maps", {}, (0.0, 0.0)),
    ("maps", {"tolerance": "fast"}, (0.0, 0.0439)),
    ("learned", {}, (0.0, 0.0439)),
]


@pytest.mark.parametrize(("kind", "options", "expected"), GIVEN, ids=str)
def test_all_follows_from_what_is_given(network, kind, options, expected):
    network = network if kind == "center" else OTHERS[kind]()
    accuracy = channels(network, **options)._accuracy
    found = accuracy.extent or 0.0, accuracy.tolerance  # 0 stands for whole maps
    assert found == pytest.approx(expected, rel=2e-3, abs=1e-9)
    # Else the outputs at the rim of a window are lost, although they are asked for.
    assert accuracy.tolerance == 0 or 0 < accuracy.epsilon < accuracy.least_weight


# What it does


def test_a_smaller_tolerance_changes_less(network):
    def change(*arguments, **options):
        """Relative to the scores of whole maps at every pixel."""
        difference = scores(network, *arguments, **options) - exact
        return np.linalg.norm(difference) / np.linalg.norm(exact)

    exact = scores(network, None)
    errors = [change(tolerance=tolerance) for tolerance in (0.1, 0.01, 1e-4)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 0.1 and errors[2] < 0.01
    assert change(None, tolerance="fast") < 0.05


def test_samples_that_are_too_far_apart_are_the_counter_example(network, monkeypatch):
    found, spacing = [], Accuracy.spacing
    for power in (0, 1, 3):
        monkeypatch.setattr(Accuracy, "spacing", lambda *a, n=power: spacing(*a) ** n)
        found.append(scores(network, None, tolerance="fast"))
    every, few, too_few = found
    error = np.linalg.norm(few - every)
    assert 0 < error < 0.02 * np.linalg.norm(every)
    assert np.linalg.norm(too_few - every) > 3 * error


def windows_of(layer):
    """Of its images at each scale: what enters and what leaves each convolution."""
    convolutions = layer.convolutions((48, 48))
    return [[windows.of_scales for windows in ends] for _, *ends in convolutions]


def test_maps_are_sampled_as_finely_as_their_scale_needs(network):
    layer = channels(network, None, tolerance="fast")
    windows = windows_of(layer)
    spacings = [[window.spacing for window in entering] for entering, _ in windows]
    assert spacings[0] == [1, 1, 1]  # the image
    assert all(of_layer == sorted(of_layer) for of_layer in spacings)
    assert max(map(max, spacings)) > 1
    assert {window.spacing for window in windows[-1][1]} == {1}
    for entering, _ in windows:
        for window in entering:
            positions = window.axes[0].positions
            assert window.spacing == 1 or 0.0 in positions


def test_windows_are_not_larger_than_the_image():
    windows = Windows((16, 17), (8.0,), False, Accuracy(0.05), sigma=2.0)
    (window,) = windows.of_scales
    assert window.spacing == 8 and window.sizes == (3, 3)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (Samples(16), Samples(9, 2)),
        (Samples(17, 2), Samples(9, 4)),
        (Samples(9, 4), Samples(7, 4)),
    ],
)
def test_interpolation_is_exact_for_cubic_polynomials(given, asked):
    matrix = cubic_interpolation(given, asked)
    inside = np.abs(asked.positions) <= given.positions[-2]
    for power in range(4):
        actual = matrix @ given.positions**power
        expected = asked.positions**power
        np.testing.assert_allclose(actual[inside], expected[inside], atol=1e-9)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)


def test_learned_scales_are_evaluated_on_whole_maps_at_every_pixel():
    """Windows would not follow them."""
    (ends,) = windows_of(channels(OTHERS["learned"]()))
    for windows in ends:
        assert {window.sizes for window in windows} == {(48, 48)}


def test_maps_that_a_network_gives_have_all_pixels():
    network = OTHERS["maps"]()
    exact, fast = scores(network), scores(network, tolerance="fast")
    assert fast.shape == exact.shape == (2, 3, 48, 48, 3)
    change = np.linalg.norm(fast - exact) / np.linalg.norm(exact)
    assert 1e-4 < change < 0.05
