"""What every figure owes to its reader."""


def assert_draws(figure):
    """All that is drawn lies inside the figure: no title or label is clipped."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = figure.get_tightbbox(canvas.get_renderer())
    width, height = figure.get_size_inches()
    slack = 0.01
    assert drawn.x0 >= -slack and drawn.x1 <= width + slack, drawn
    assert drawn.y0 >= -slack and drawn.y1 <= height + slack, drawn


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_title()]
