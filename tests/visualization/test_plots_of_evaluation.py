"""Figures of accuracies and scale selection."""

import sys

import numpy as np
import pytest

from keras_gdrn.evaluation import ScaleGeneralization, ScaleSelectionHistogram
from keras_gdrn.visualization import (
    plot_scale_generalization,
    plot_scale_selection_histogram,
)
from tests.visualization._drawing import assert_draws

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.seen_on_tensorflow("drawn from arrays")

FACTORS = 2 ** (np.arange(-4, 5) / 4)


def curve(level):
    return ScaleGeneralization(FACTORS, np.full(9, level))


def histogram():
    return ScaleSelectionHistogram(
        FACTORS, np.array([2.0, 0.5, 1.0]), np.tile([0.6, 0.1, 0.3], (9, 1))
    )


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


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
    figure = plot_scale_selection_histogram(histogram())
    assert_draws(figure)
    axes, bar = figure.axes
    assert ticks(axes.yaxis) == ["0.5", "1", "2"]
    np.testing.assert_array_equal(axes.images[0].get_array()[:, 0], [0.1, 0.3, 0.6])
    assert axes.images[0].origin == "lower"
    assert "share" in bar.get_ylabel()


def test_plots_go_into_axes_that_are_given():
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot_scale_generalization({"a": curve(1.0)}, axes=left) is figure
    assert plot_scale_selection_histogram(histogram(), axes=right) is figure
    assert len(left.lines) == 1
    assert len(right.images) == 1


def test_missing_results_and_missing_matplotlib_are_told(monkeypatch):
    with pytest.raises(ValueError, match="at least one"):
        plot_scale_generalization({})
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="`viz`"):
        plot_scale_generalization({"a": curve(1.0)})
