"""Figures of what is evaluated, of images, kernels and filters; tables and labels."""

import itertools
import sys
from functools import partial

import numpy as np
import pytest

from keras_gdrn.commands import save_figure
from keras_gdrn.evaluation import ScaleGeneralization, ScaleSelectionHistogram
from keras_gdrn.visualization import (
    markdown_table,
    plot_activation_maps,
    plot_basis_kernels,
    plot_effective_filters,
    plot_image_grid,
    plot_scale_generalization,
    plot_scale_selection_histogram,
    plot_sizes,
    size_label,
)

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.seen_on_tensorflow("drawn from arrays")

RNG = np.random.default_rng(0)
FACTORS = 2 ** (np.arange(-4, 5) / 4)
SHARES = np.tile([0.6, 0.1, 0.3], (9, 1))
HISTOGRAM = ScaleSelectionHistogram(FACTORS, np.array([2.0, 0.5, 1.0]), SHARES)
IMAGES, MAPS = np.full((2, 8, 12, 3), 0.5), RNG.random((2, 3, 8, 12))
STANDARD, SEPARABLE = RNG.normal(size=(5, 5, 3, 4)), RNG.normal(size=(9, 9, 2))


def curve(level):
    return ScaleGeneralization(FACTORS, np.full(9, level))


def assert_draws(figure):
    """All that is drawn lies inside the figure: no title or label is clipped."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = figure.get_tightbbox(canvas.get_renderer())
    assert np.all(drawn.min >= -0.01), drawn
    assert np.all(drawn.max <= figure.get_size_inches() + 0.01), drawn


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def drawn(figure):
    return [image for axes in figure.axes for image in axes.images]


def test_scale_generalization_has_a_curve_for_each_model():
    figure = plot_scale_generalization({"a": curve(0.5), "b": curve(0.9)})
    assert_draws(figure)
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), 90)
    assert axes.get_xscale() == "log"
    labels = ["1/2", "0.59", "0.71", "0.84", "1", "1.19", "1.41", "1.68", "2"]
    assert ticks(axes.xaxis) == labels
    shaded = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert shaded.x0 < 1 < shaded.x1


@pytest.mark.parametrize(("count", "length"), [(1, 1), (3, 20), (10, 10), (10, 48)])
def test_names_of_any_length_fit(count, length):
    text = "stl10_average_pretrained, of the first stage only"
    names = [f"{number}{text[:length]}" for number in range(count)]
    figure = plot_scale_generalization({name: curve(0.5) for name in names})
    assert_draws(figure)
    (axes,) = figure.axes
    width, height = axes.get_position().size * figure.get_size_inches()
    assert width > 5 and height > 3


def test_scale_selection_is_drawn_from_fine_to_coarse():
    figure = plot_scale_selection_histogram(HISTOGRAM)
    assert_draws(figure)
    axes, bar = figure.axes
    assert ticks(axes.yaxis) == ["0.5", "1", "2"]
    np.testing.assert_array_equal(axes.images[0].get_array()[:, 0], [0.1, 0.3, 0.6])
    assert axes.images[0].origin == "lower"
    assert "share" in bar.get_ylabel()


def test_plots_go_into_axes_that_are_given():
    from matplotlib.figure import Figure

    left, right = Figure().subplots(1, 2)
    plot_scale_generalization({"a": curve(1.0)}, axes=left)
    figure = plot_scale_selection_histogram(HISTOGRAM, axes=right)
    assert figure is left.figure
    assert (len(left.lines), len(right.images)) == (1, 1)


def test_sizes_are_a_grid_of_images():
    figure = plot_sizes(dict.fromkeys((2.0, 0.5, 1.0), IMAGES))
    assert titles(figure) == ["1/2", "1", "2"]
    assert len(drawn(figure)) == 6


def test_rows_of_images_with_and_without_titles_are_as_far_apart():
    image = np.zeros((8, 8, 1))
    figure = plot_image_grid([[("cat", image)], [("", image)], [("", image)] * 2])
    assert_draws(figure)
    assert [axes.get_title() for axes in figure.axes] == ["cat", "", "", ""]
    assert all(image.get_clim() == (0, 1) for image in drawn(figure))
    places = [axes.get_position() for axes in figure.axes]
    first, second, _ = (a.y0 - b.y1 for a, b in itertools.pairwise(places))
    assert first == pytest.approx(second)
    assert first * figure.get_figheight() < 0.1  # inches


def test_numbers_in_a_table_stand_below_one_another():
    """As CommonMark's extension defines it."""
    table = markdown_table([["network", "1/2", "1"], ["σ", "0.971", "1"]])
    assert table.splitlines() == [
        "| network |   1/2 |   1 |",
        "| :------ | ----: | --: |",
        "| σ       | 0.971 |   1 |",
    ]


def test_size_labels_are_short():
    labels = [size_label(factor) for factor in (1 / 3, 0.25, 2**-0.75, 1, 2**0.75, 16)]
    assert labels == ["1/3", "1/4", "0.59", "1", "1.68", "16"]


@pytest.mark.parametrize("level", [1e-4, 1, 1e4])
def test_activation_maps_are_as_large_as_images_and_numbers_have_their_place(level):
    figure = plot_activation_maps(IMAGES, level * MAPS, names=["cat", "dog"])
    assert_draws(figure)
    assert titles(figure) == ["cat", "σ₀ = 1/2", "σ₀ = 1", "σ₀ = 2", "dog"]
    arrays = [image.get_array() for image in drawn(figure)]
    np.testing.assert_array_equal(arrays[0], IMAGES[0])
    np.testing.assert_array_equal(arrays[1:4], level * MAPS[0])
    np.testing.assert_array_equal(arrays[5:], level * MAPS[1])
    sizes = [axes.get_position().size for axes in figure.axes]
    np.testing.assert_allclose(sizes, sizes[:1] * 8)
    boxes = [axes.get_tightbbox() for axes in figure.axes[:4]]
    for left, right in itertools.pairwise(boxes):
        assert left.x1 <= right.x0


def test_each_activation_map_has_its_color_bar_from_zero():
    maps = np.concatenate([MAPS[:, :1] + 5, 0 * MAPS[:, :2]], axis=1)
    figure = plot_activation_maps(IMAGES, maps)
    for axes, expected in zip(figure.axes[1:4], maps[0], strict=True):
        (bar,) = axes.child_axes
        np.testing.assert_allclose(bar.get_ylim(), (0, expected.max() or 1))


def test_basis_kernels_form_a_triangle_at_each_scale():
    figure = plot_basis_kernels(sigma=(1.0, 2.0), order=2)
    assert_draws(figure)
    orders = ["$g$", "$g_{x}$", "$g_{y}$", "$g_{xx}$", "$g_{xy}$", "$g_{yy}$"]
    assert titles(figure) == 2 * orders
    assert len(plot_basis_kernels(np.float32(3), order=0).axes) == 1


def test_filters_have_a_row_for_each_layer():
    layers = {"block1.conv1": STANDARD, "head": SEPARABLE}
    figure = plot_effective_filters(layers, columns=5)
    assert_draws(figure)
    names = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert names == ["block1.conv1\n5 × 5", "head\n9 × 9"]
    arrays = [image.get_array() for image in drawn(figure)]
    assert [len(values) for values in arrays] == 5 * [5] + 2 * [9]
    np.testing.assert_array_equal(arrays[0], STANDARD[:, :, 0, 0])
    np.testing.assert_array_equal(arrays[4], STANDARD[:, :, 2, 3])
    np.testing.assert_array_equal(arrays[6], SEPARABLE[:, :, 1])


def test_zero_is_white_positive_red_and_negative_blue():
    values = np.array([[0.0, 1.0, -3.0], [2.0, 0, 0], [0, 0, 0]])
    (image,) = drawn(plot_effective_filters({"": values[..., None]}))
    red, _, blue = np.moveaxis(image.to_rgba(values)[..., :3], -1, 0)
    assert blue[0, 2] == 1 and red[0, 2] == 0
    # One range for both signs: paler than the largest.
    assert red[0, 1] == red[1, 0] == 1
    np.testing.assert_allclose([blue[0, 1], blue[1, 0]], [2 / 3, 1 / 3], atol=0.01)
    white = image.to_rgba(values)[values == 0]
    np.testing.assert_allclose(white, 1, atol=0.01)
    (image,) = drawn(plot_effective_filters({"": np.zeros((3, 3, 1))}))
    np.testing.assert_allclose(image.to_rgba(np.zeros((3, 3))), 1, atol=0.01)


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (markdown_table, ([],), r"Received: rows of \[\] cells"),
        (markdown_table, ([["a", "b"], ["1"]],), r"Received: rows of \[2, 1\] cells"),
        (plot_scale_generalization, ({},), "at least one"),
        (plot_sizes, ({1.0: IMAGES[:0]},), "at least one image"),
        (plot_image_grid, ([],), "at least one image"),
        (plot_activation_maps, (IMAGES, MAPS[:1]), "`maps` must .* 3 scales"),
        (plot_activation_maps, (IMAGES, MAPS[:, :2]), "`maps` must .* 3 scales"),
        (plot_activation_maps, (IMAGES, MAPS[:, :, :4]), "`maps` must .* 3 scales"),
        (plot_activation_maps, (IMAGES[:0], MAPS[:0]), "`maps` must .* 3 scales"),
        (plot_basis_kernels, (-1.0,), "`sigma`"),
        (partial(plot_activation_maps, names=["cat"]), (IMAGES, MAPS), "1 names"),
        (partial(plot_effective_filters, columns=0), ({"a": STANDARD},), "columns=0"),
        (plot_effective_filters, ({},), "at least one filter"),
        (plot_effective_filters, ({"a": STANDARD[..., :0]},), "at least one filter"),
    ],
)
def test_what_does_not_fit_is_refused(function, given, message):
    with pytest.raises(ValueError, match=message):
        function(*given)


def test_missing_matplotlib_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="`viz`"):
        plot_scale_generalization({"a": curve(1.0)})


def test_a_figure_without_a_suffix_is_a_png(tmp_path):
    figure = plot_basis_kernels([1.0])
    save_figure(figure, tmp_path / "curves")
    assert [file.name for file in tmp_path.iterdir()] == ["curves"]
    assert (tmp_path / "curves").read_bytes().startswith(b"\x89PNG")
