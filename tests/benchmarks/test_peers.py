"""The peers' layers are what their publications define; the benchmark, on a few digits.

`magnified` is exact: what differs is the interpolation, or the sampling of kernels.
"""

import keras
import numpy as np
import pytest
from scipy.special import eval_hermite, factorial

import keras_gdrn.data
from keras_gdrn.data import rescaled_arrays
from keras_gdrn.layers import ScaleChannels


@pytest.fixture
def peers(studies):
    return studies("peer_networks")


@pytest.fixture
def magnified(studies):
    return studies("magnify").magnified


@pytest.fixture(scope="module")
def images():
    return rescaled_arrays("digits", "test", canvas=40, limit=6)[0]


def at_scale(layer, images, scale):
    maps = ScaleChannels(layer, [scale])(images)
    return keras.ops.convert_to_numpy(maps)[:, 0]


def difference(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("factor", [0.5, 2**-0.5, 2**0.25, 2])
def test_a_magnified_image_is_seen_as_it_was(peers, magnified, images, factor):
    view = peers.Foveation(28)
    larger = magnified(images, factor, odd=False, blur=2.0)
    smooth = magnified(images, 1, odd=False, blur=2.0)
    expected = at_scale(view, smooth, 1.0)
    assert difference(at_scale(view, larger, factor), expected) < 0.015
    assert difference(at_scale(view, larger, 1.0), expected) > 0.3


def test_a_view_is_the_center_and_beyond_the_image_there_is_nothing(peers, images):
    view = at_scale(peers.Foveation(28), images, 1.0)
    np.testing.assert_allclose(view, images[:, 6:34, 6:34], atol=1e-6)
    view = at_scale(peers.Foveation(28), np.ones((1, 40, 40, 1), "float32"), 2.0)
    inside = np.pad(np.ones((20, 20)), 4)
    np.testing.assert_allclose(view[0, :, :, 0], inside, atol=1e-6)


def test_details_that_a_view_cannot_show_are_smoothed_away(peers):
    stripes = np.tile([0.0, 1.0], 20) * np.ones((1, 40, 1))
    view = at_scale(peers.Foveation(8), stripes[..., None].astype("float32"), 3.0)
    assert np.ptp(view) < 0.1
    assert np.mean(view) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("scale", [2, 3])
def test_the_basis_is_one_function_at_all_scales(peers, scale):
    fine = peers.hermite_basis(1.0)
    coarse = peers.hermite_basis(float(scale))
    radius = min(fine.shape[1] // 2, coarse.shape[1] // 2 // scale)
    sampled = centered(coarse, radius, step=scale)
    np.testing.assert_allclose(scale**2 * sampled, centered(fine, radius), atol=1e-12)


def test_the_basis_is_of_hermite_functions(peers):
    """Of unit norm, each."""
    sigma, radius = 2.0, 7
    x = np.arange(-radius, radius + 1) / sigma
    y, x = np.meshgrid(x, x, indexing="ij")
    envelope = np.exp(-(x**2 + y**2) / 2)
    kernels = peers.hermite_basis(sigma)
    orders = [(m, n) for m in range(4) for n in range(4 - m)]
    for kernel, (m, n) in zip(kernels, orders, strict=True):
        squared = np.pi * 2 ** (m + n) * factorial(m) * factorial(n)
        expected = eval_hermite(m, y) * eval_hermite(n, x) * envelope
        np.testing.assert_allclose(sigma**2 * kernel, expected / squared**0.5)


@pytest.mark.parametrize("sigma, tolerance", [(0.6, 0.08), (1.2, 0.015), (1.7, 0.01)])
def test_lifted_maps_of_a_magnified_image_are_magnified(
    peers, magnified, images, sigma, tolerance
):
    keras.utils.set_random_seed(0)
    lifting = peers.HermiteConv(8, sigma)
    smooth, larger = (magnified(images, factor, blur=1.0) for factor in (1, 2))
    expected = centered(at_scale(lifting, smooth, 1.0), 10)
    found = [centered(at_scale(lifting, larger, s), 10, step=2) for s in (1.0, 2.0)]
    assert difference(found[1], expected) < tolerance
    assert difference(found[0], expected) > 0.1


def centered(maps, radius, step=1):
    """Maps at the points up to `radius` steps from the central pixel."""
    center = maps.shape[1] // 2
    points = slice(center - radius * step, center + radius * step + 1, step)
    return maps[:, points, points]


def test_layers_at_several_scales_give_what_they_give_at_each(peers, images):
    for layer in (peers.Foveation(28), peers.HermiteConv(4, 1.2)):
        both = keras.ops.convert_to_numpy(ScaleChannels(layer, [0.5, 2.0])(images))
        for index, scale in enumerate((0.5, 2.0)):
            own = at_scale(layer, images, scale)
            np.testing.assert_allclose(both[:, index], own, atol=1e-5)


@pytest.mark.slow
def test_every_network_has_a_row(table_of, tmp_path, monkeypatch):
    """Of MNIST, whose canvas is larger in the test; with digits in its place."""
    asked = {}

    def instead(name, split, factor=1.0, *, canvas, limit, **_):
        asked[split] = (name, canvas)
        return rescaled_arrays("digits", split, factor, canvas=canvas, limit=limit)

    monkeypatch.setattr(keras_gdrn.data, "rescaled_arrays", instead)
    options = ["--dataset", "mnist", "--only", "foveated", "sesn", "--out", tmp_path]
    rows = table_of("studies/peers.py", *options, "--epochs", 1, "--limit", 4)
    assert asked == {"train": ("mnist", 40), "test": ("mnist", 56)}
    assert [title for title, *_ in rows] == ["foveated, 7 scales", "SESN, 5 scales"]
    for _, *accuracies, parameters, _, _ in rows:
        assert len(accuracies) == 9
        assert all(0 <= float(accuracy) <= 100 for accuracy in accuracies)
        assert 8000 < int(parameters) < 10000
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"results.md", "scale_generalization.png"}
