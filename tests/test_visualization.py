"""Figures: drawn completely, and from values that are checked as numbers."""

import sys

import numpy as np
import pytest

from keras_gdrn.evaluation import ScaleGeneralisation, ScaleSelectionHistogram
from keras_gdrn.visualization import (
    basis_kernels,
    jet_kernels,
    plot_image_grid,
    plot_scale_generalisation,
    plot_scale_selection_histogram,
    plot_sizes,
    size_label,
)

pytest.importorskip("matplotlib")

FACTORS = 2 ** (np.arange(-4, 5) / 4)


def curve(level):
    return ScaleGeneralisation(FACTORS, np.full(9, level))


def histogram():
    return ScaleSelectionHistogram(
        FACTORS, np.array([2.0, 0.5, 1.0]), np.tile([0.6, 0.1, 0.3], (9, 1))
    )


def assert_draws(figure, path):
    figure.savefig(path)
    assert path.stat().st_size > 1000


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_scale_generalisation_has_a_curve_for_each_model(tmp_path):
    figure = plot_scale_generalisation({"a": curve(0.5), "b": curve(0.9)})
    assert_draws(figure, tmp_path / "curves.png")
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), 90)
    assert axes.get_xscale() == "log"
    labels = ["1/2", "0.59", "0.71", "0.84", "1", "1.19", "1.41", "1.68", "2"]
    assert ticks(axes.xaxis) == labels
    shaded = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert shaded.x0 < 1 < shaded.x1


def test_scale_generalisation_needs_results():
    with pytest.raises(ValueError, match="at least one"):
        plot_scale_generalisation({})


def test_scale_selection_is_drawn_from_fine_to_coarse(tmp_path):
    figure = plot_scale_selection_histogram(histogram())
    assert_draws(figure, tmp_path / "histogram.png")
    axes, bar = figure.axes
    assert ticks(axes.yaxis) == ["0.5", "1", "2"]
    np.testing.assert_array_equal(axes.images[0].get_array()[:, 0], [0.1, 0.3, 0.6])
    assert axes.images[0].origin == "lower"
    assert "share" in bar.get_ylabel()


def test_plots_go_into_axes_that_are_given():
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot_scale_generalisation({"a": curve(1.0)}, axes=left) is figure
    assert plot_scale_selection_histogram(histogram(), axes=right) is figure
    assert len(left.lines) == 1
    assert len(right.images) == 1


def test_basis_kernels_form_a_triangle_at_each_scale(tmp_path):
    figure = basis_kernels(sigma=(1.0, 2.0), order=2)
    assert_draws(figure, tmp_path / "kernels.png")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == 2 * [
        "$g$",
        "$g_{x}$",
        "$g_{y}$",
        "$g_{xx}$",
        "$g_{xy}$",
        "$g_{yy}$",
    ]
    assert len(basis_kernels(np.float32(3), order=0).axes) == 1


def test_jet_kernels_are_derivatives_of_a_gaussian():
    jet = jet_kernels(2.0, order=2, radius=30)
    y, x = np.mgrid[-30:31, -30:31]
    np.testing.assert_allclose(jet[0, 0].sum(), 1)
    np.testing.assert_allclose((jet[0, 0] * x**2).sum(), 2.0**2)
    # Convolution with g_x differentiates along x: -Σ g_x(x) x = σ.
    np.testing.assert_allclose(-(jet[0, 1] * x).sum(), 2.0)
    np.testing.assert_allclose(-(jet[1, 0] * y).sum(), 2.0)
    np.testing.assert_allclose((jet[1, 1] * x * y).sum(), 2.0**2)
    np.testing.assert_allclose((jet[0, 2] * x**2 / 2).sum(), 2.0**2)


def test_jet_kernels_cover_what_the_papers_figure_shows():
    assert jet_kernels(1.0, order=3)[0, 0].shape == (11, 11)
    assert jet_kernels(4.0, order=3)[3, 0].shape == (33, 33)


@pytest.mark.parametrize("function", [jet_kernels, basis_kernels])
def test_kernels_refuse_a_scale_that_is_none(function):
    with pytest.raises(ValueError, match="`sigma`"):
        function(-1.0, order=1)
    with pytest.raises(ValueError, match="`order`"):
        function(1.0, order=-1)


def test_sizes_are_a_grid_of_images(tmp_path):
    images = {factor: np.full((2, 8, 8, 3), 0.5) for factor in (2.0, 0.5, 1.0)}
    figure = plot_sizes(images)
    assert_draws(figure, tmp_path / "sizes.png")
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["1/2", "1", "2"]
    assert len(figure.axes) == 6
    with pytest.raises(ValueError, match="at least one image"):
        plot_sizes({1.0: np.zeros((0, 8, 8, 1))})


def test_rows_of_images_may_differ_in_length(tmp_path):
    image = np.zeros((8, 8, 3))
    figure = plot_image_grid([[("cat", image), ("dog", image)], [("", image)]])
    assert_draws(figure, tmp_path / "grid.png")
    assert [axes.get_title() for axes in figure.axes] == ["cat", "dog", ""]
    with pytest.raises(ValueError, match="at least one image"):
        plot_image_grid([])


def test_size_labels_are_short():
    labels = [size_label(factor) for factor in (1 / 3, 0.25, 2**-0.75, 1, 2**0.75, 16)]
    assert labels == ["1/3", "1/4", "0.59", "1", "1.68", "16"]


def test_missing_matplotlib_is_said_to_be_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="`viz`"):
        plot_scale_generalisation({"a": curve(1.0)})
