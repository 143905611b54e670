"""The benchmark of scale covariance, on a few digits."""

import numpy as np
import pytest


def percentages(cells):
    return [float(cell.removesuffix(" %")) for cell in cells]


@pytest.mark.slow
def test_the_error_falls_with_the_scale_and_few_answers_change(table_of):
    table = table_of("covariance.py", "scores", "--images", 30)
    scales, _, natural, _, _, bicubic, same, *_ = zip(*table, strict=True)
    assert scales == ("0.5", "1", "2")
    assert np.all(np.diff(percentages(natural)) < 0)
    assert percentages(bicubic)[1] < percentages(natural)[1] / 2
    assert min(percentages(same)) > 80


@pytest.mark.slow
def test_every_layer_and_size_has_a_row(table_of):
    layers = table_of("covariance.py", "layers", "--images", 4)
    assert [layer for layer, *_ in layers] == [
        *("stem_conv", "block1", "block2", "block3", "block4", "head")
    ]
    finer = table_of("covariance.py", "finer", "--images", 20)
    for _, *row in finer:
        *accuracies, same_between, between, same_finer, finer = percentages(row)
        assert min(*accuracies, same_between, same_finer) > 80
        for change in (between, finer):
            assert 1 < change < 100  # on the same grid, or of other images
