"""Tables in Markdown, read as CommonMark's extension defines them."""

import pytest

from keras_gdrn.visualization import markdown_table


def test_numbers_stand_below_one_another():
    table = markdown_table([["network", "1/2", "1"], ["σ", "0.971", "1"]])
    assert table.splitlines() == [
        "| network |   1/2 |   1 |",
        "| :------ | ----: | --: |",
        "| σ       | 0.971 |   1 |",
    ]


@pytest.mark.parametrize("rows", [[], [["a", "b"], ["1"]]])
def test_rows_that_are_no_table(rows):
    lengths = [len(row) for row in rows]
    with pytest.raises(ValueError) as error:
        markdown_table(rows)
    assert f"Received: rows of {lengths} cells" in str(error.value)
