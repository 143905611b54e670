"""How a command ends when a file, a folder, an option or the disk is not fit."""

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Decorates a `main`: a wrong option or file ends it without a traceback."""
    try:
        yield
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """The type of an option that is a finite, positive number."""

    def number(text: str) -> float:
        value = kind(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be positive. Received: {text}")
        return value

    return number
