"""Figures of basis kernels and learned filters."""

import numpy as np
import pytest

from keras_gdrn.visualization import plot_basis_kernels, plot_effective_filters
from tests.visualization._drawing import assert_draws, titles

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.seen_on_tensorflow("drawn from arrays")


def images(figure):
    return [image for axes in figure.axes for image in axes.images]


def test_basis_kernels_form_a_triangle_at_each_scale():
    figure = plot_basis_kernels(sigma=(1.0, 2.0), order=2)
    assert_draws(figure)
    orders = ["$g$", "$g_{x}$", "$g_{y}$", "$g_{xx}$", "$g_{xy}$", "$g_{yy}$"]
    assert titles(figure) == 2 * orders
    assert len(plot_basis_kernels(np.float32(3), order=0).axes) == 1
    with pytest.raises(ValueError, match="`sigma`"):
        plot_basis_kernels(-1.0, order=1)


class TestEffectiveFilters:
    standard = np.random.default_rng(0).normal(size=(5, 5, 3, 4))
    separable = np.random.default_rng(1).normal(size=(9, 9, 2))

    def test_a_row_for_each_layer(self):
        layers = {"block1.conv1": self.standard, "head": self.separable}
        figure = plot_effective_filters(layers, columns=5)
        assert_draws(figure)
        names = [text.get_text() for axes in figure.axes for text in axes.texts]
        assert names == ["block1.conv1\n5 × 5", "head\n9 × 9"]
        drawn = [image.get_array() for image in images(figure)]
        assert [len(values) for values in drawn] == 5 * [5] + 2 * [9]
        np.testing.assert_array_equal(drawn[0], self.standard[:, :, 0, 0])
        np.testing.assert_array_equal(drawn[4], self.standard[:, :, 2, 3])
        np.testing.assert_array_equal(drawn[6], self.separable[:, :, 1])

    def test_zero_is_white_positive_red_and_negative_blue(self):
        values = np.array([[0.0, 1.0, -3.0], [2.0, 0, 0], [0, 0, 0]])
        (image,) = images(plot_effective_filters({"": values[..., None]}))
        red, _, blue = np.moveaxis(image.to_rgba(values)[..., :3], -1, 0)
        assert blue[0, 2] == 1 and red[0, 2] == 0
        # One range for both signs: paler than the largest.
        assert red[0, 1] == red[1, 0] == 1
        np.testing.assert_allclose([blue[0, 1], blue[1, 0]], [2 / 3, 1 / 3], atol=0.01)
        white = image.to_rgba(values)[values == 0]
        np.testing.assert_allclose(white, 1, atol=0.01)
        (image,) = images(plot_effective_filters({"": np.zeros((3, 3, 1))}))
        np.testing.assert_allclose(image.to_rgba(np.zeros((3, 3))), 1, atol=0.01)

    def test_nothing_to_draw_is_refused(self):
        for empty in ({}, {"a": np.zeros((5, 5, 0))}):
            with pytest.raises(ValueError, match="at least one filter"):
                plot_effective_filters(empty)
        with pytest.raises(ValueError, match="columns=0"):
            plot_effective_filters({"a": self.standard}, columns=0)
