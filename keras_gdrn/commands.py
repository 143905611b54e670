"""Helpers for commands: errors in one line, files written completely or not at all.

Those in `examples`, `tuning` and `benchmarks` use them; so can yours.
"""

import argparse
import contextlib
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "atomic_write",
    "errors_in_one_line",
    "positive",
    "save_figure",
    "write_text",
]

# In the errors of HDF5, some of which are `RuntimeError`.
_FULL_DISK = re.compile(r"No space left|errno = 28\b|file write failed")


@contextlib.contextmanager
def errors_in_one_line(*others: type[Exception]) -> Iterator[None]:
    """Decorate a `main` to end with one line, not a traceback, at a user's mistake.

    Args:
        *others: Further errors to treat so, besides `OSError`, `ValueError`,
            `FloatingPointError` (a loss that is not finite) and the `RuntimeError` of
            HDF5 on a full disk.

    Returns:
        A decorator, or a context manager, that ends with `SystemExit`: the message of
        the error and the exit status 1.

    Example:

    >>> @errors_in_one_line()
    ... def main():
    ...     model = keras.saving.load_model("not there.keras")
    """
    try:
        yield
    except (OSError, ValueError, FloatingPointError, *others) as error:
        sys.exit(f"error: {error}")
    except RuntimeError as error:
        if not _FULL_DISK.search(str(error)):
            raise
        sys.exit(f"error: {' '.join(str(error).split())}")


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """The type of an `argparse` option that is a finite, positive number.

    Args:
        kind: `int` or `float`.

    Returns:
        A function from the text of the option to the number.

    Example:

    >>> parser.add_argument("--epochs", type=positive(int))
    """

    def number(text: str) -> float:
        value = kind(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(
                f"must be finite and positive. Received: {text}"
            )
        return value

    return number


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Write a file so that it appears completely or not at all.

    Args:
        path: The file. An existing one stays as it is until the context ends.

    Returns:
        A context manager with the path to write to, `partial-<name>` in the same
        folder. At the end it replaces the file, unless there is an error.

    Example:

    >>> with atomic_write(Path("runs/model.keras")) as partial:
    ...     model.save(partial)
    """
    partial = path.with_name(f"partial-{path.name}")
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)  # a full disk needs the space
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, in UTF-8, completely or not at all.

    Args:
        path: The file, which is replaced.
        text: Its content.

    Example:

    >>> write_text(Path("runs/results.md"), "| size | accuracy |")
    """
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")


def save_figure(figure: "Figure", path: Path) -> None:
    """Save a figure of `visualization` completely or not at all.

    Args:
        figure: A `matplotlib.figure.Figure`.
        path: The file, which is replaced; its suffix is the format, by default PNG.

    Example:

    >>> save_figure(plot_scale_generalization(results), Path("runs/curve.png"))
    """
    with atomic_write(path) as partial:
        figure.savefig(partial, format=path.suffix[1:] or "png")
