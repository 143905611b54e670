"""Tables as Markdown, which can also be read as they are."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Markdown table of `rows`, the first its header; numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
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
