"""Tables in Markdown."""

from collections.abc import Sequence


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, aligned so that its source is readable too.

    Args:
        rows: The cells of each row. The first row is the header; the first column is
            aligned to the left, the others, for numbers, to the right.

    Returns:
        The lines of the table.

    Raises:
        ValueError: If there is no row, or they have different numbers of cells.

    Example:

    >>> print(markdown_table([["network", "1/2", "1"], ["six", "0.971", "0.977"]]))
    | network |   1/2 |     1 |
    | :------ | ----: | ----: |
    | six     | 0.971 | 0.977 |
    """
    if len({len(row) for row in rows}) != 1:
        raise ValueError(
            "`rows` must be one or more, all with the same number of cells. "
            f"Received: rows of {[len(row) for row in rows]} cells"
        )
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    rules = [
        ":" + "-" * (widths[0] - 1),
        *("-" * (width - 1) + ":" for width in widths[1:]),
    ]
    lines = []
    for first, *others in (rows[0], rules, *rows[1:]):
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(w) for cell, w in zip(others, widths[1:], strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
