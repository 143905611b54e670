"""Figures of images and of activation maps."""

import itertools

import numpy as np
import pytest

from keras_gdrn.visualization import (
    plot_activation_maps,
    plot_image_grid,
    plot_sizes,
    size_label,
)
from tests.visualization._drawing import assert_draws, titles

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.seen_on_tensorflow("drawn from arrays")


def test_sizes_are_a_grid_of_images():
    images = {factor: np.full((2, 8, 8, 3), 0.5) for factor in (2.0, 0.5, 1.0)}
    figure = plot_sizes(images)
    assert_draws(figure)
    assert titles(figure) == ["1/2", "1", "2"]
    assert len(figure.axes) == 6
    with pytest.raises(ValueError, match="at least one image"):
        plot_sizes({1.0: np.zeros((0, 8, 8, 1))})


def test_rows_of_images_with_and_without_titles_are_as_far_apart():
    image = np.zeros((8, 8, 1))
    figure = plot_image_grid([[("cat", image)], [("", image)], [("", image)] * 2])
    assert_draws(figure)
    assert [axes.get_title() for axes in figure.axes] == ["cat", "", "", ""]
    assert all(axes.images[0].get_clim() == (0, 1) for axes in figure.axes)
    places = [axes.get_position() for axes in figure.axes]
    first, second, _ = (a.y0 - b.y1 for a, b in itertools.pairwise(places))
    assert first == pytest.approx(second)
    assert first * figure.get_figheight() < 0.1  # inches
    with pytest.raises(ValueError, match="at least one image"):
        plot_image_grid([])


def test_size_labels_are_short():
    labels = [size_label(factor) for factor in (1 / 3, 0.25, 2**-0.75, 1, 2**0.75, 16)]
    assert labels == ["1/3", "1/4", "0.59", "1", "1.68", "16"]


class TestActivationMaps:
    images = np.full((2, 8, 12, 3), 0.5)
    maps = np.random.default_rng(0).random((2, 3, 8, 12))

    def test_a_row_for_each_image(self):
        figure = plot_activation_maps(self.images, self.maps, names=["cat", "dog"])
        assert_draws(figure)
        scales = ["σ₀ = 1/2", "σ₀ = 1", "σ₀ = 2"]
        assert titles(figure) == ["cat", *scales, "dog"]
        drawn = [axes.images[0].get_array() for axes in figure.axes]
        np.testing.assert_array_equal(drawn[0], self.images[0])
        np.testing.assert_array_equal(np.stack(drawn[1:4]), self.maps[0])
        np.testing.assert_array_equal(np.stack(drawn[5:]), self.maps[1])

    def test_each_map_has_its_color_bar_from_zero(self):
        maps = np.concatenate([self.maps[:, :1] + 5, 0 * self.maps[:, :2]], axis=1)
        figure = plot_activation_maps(self.images, maps)
        for axes, expected in zip(figure.axes[1:4], maps[0], strict=True):
            (bar,) = axes.child_axes
            np.testing.assert_allclose(bar.get_ylim(), (0, expected.max() or 1))

    @pytest.mark.parametrize("level", [1e-4, 1, 1e4])
    def test_maps_are_as_large_as_images_and_wide_numbers_have_their_place(self, level):
        figure = plot_activation_maps(self.images, level * self.maps)
        assert_draws(figure)
        sizes = [axes.get_position().size for axes in figure.axes]
        np.testing.assert_allclose(sizes, sizes[:1] * 8)
        boxes = [axes.get_tightbbox() for axes in figure.axes[:4]]
        for left, right in itertools.pairwise(boxes):
            assert left.x1 <= right.x0

    @pytest.mark.parametrize(
        ("images", "maps", "sigma0", "names"),
        [
            (images, maps[:1], SIGMA0 := (0.5, 1, 2), None),
            (images, maps[:, :2], SIGMA0, None),
            (images, maps[:, :, :4], SIGMA0, None),
            (images, maps, SIGMA0, ["cat"]),
            (images[:0], maps[:0], SIGMA0, None),
        ],
    )
    def test_what_does_not_fit_is_refused(self, images, maps, sigma0, names):
        with pytest.raises(ValueError, match=r"`maps` must .* 3 scales"):
            plot_activation_maps(images, maps, sigma0, names=names)
