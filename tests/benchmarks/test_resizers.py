"""The benchmark of the resizers, on a few digits."""

import pytest


@pytest.mark.slow
def test_stock_resizers_differ_where_their_scale_does(table_of):
    table = table_of("resizers.py", "--dataset", "digits", "--limit", 4)
    found = {(name, measure): cells for name, measure, *cells in table}
    largest = list(map(float, found["`tf.image.resize`", "largest"]))
    inside = list(map(float, found["`tf.image.resize`", "largest inside"]))
    half, one, root_two, two = 0, 4, 6, 8
    assert largest[one] == 0
    assert largest[half] > 1 and largest[two] > 1
    assert inside[half] == inside[two] == 0
    assert inside[root_two] > 1
