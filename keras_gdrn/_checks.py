"""Checks of arguments: an error names the argument and the value received."""

import difflib
import functools
import inspect
import math
import numbers
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def is_number(value: Any) -> bool:
    """Whether `value` is a real number; `True` is not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Whether `value` is an integer; `True` is not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_positive(value: Any) -> bool:
    """Whether `value` is a finite, positive number."""
    return is_number(value) and 0 < value < math.inf


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be recorded")


def check_choice(name: str, value: Any, choices: Collection) -> Any:
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {choices}.{did_you_mean(value, choices)} "
            f"Received: {name}={shown(value)}"
        )
    return value


def did_you_mean(value: Any, known: Collection) -> str:
    """A question after the nearest of the known words, if there is one."""
    words = [word for word in known if isinstance(word, str)]
    near = difflib.get_close_matches(value if isinstance(value, str) else "", words, 1)
    return f" Did you mean `{near[0]}`?" if near else ""


def shown(value: Any) -> str:
    """How an error shows what was received: an array would fill the screen."""
    text = repr(value)
    return text if len(text) <= 200 else reprlib.repr(value)


def takes_keywords_of(
    *others: Callable, refused: Collection[str] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function that passes its further keywords to others.

    A keyword that none of them takes is refused at once. Given `num_classes`, Python
    itself would first complain of a missing `classes`.

    Args:
        *others: Functions that the keywords are passed to.
        refused: Keywords of these functions that the caller cannot pass.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            check_keywords(
                function.__name__, kwargs, function, *others, refused=refused
            )
            return function(*args, **kwargs)

        return checked

    return decorate


def check_keywords(
    name: str, given: Mapping, *accepting: Callable, refused: Collection[str] = ()
) -> None:
    """Refuses a keyword that no function accepts, and suggests the nearest one."""
    accepted = [
        parameter.name
        for function in accepting
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name not in refused
    ]
    for keyword, value in given.items():
        if keyword in refused:
            raise ValueError(
                f"`{keyword}` is set by `{name}` and cannot be passed. "
                f"Received: {keyword}={value!r}"
            )
        if keyword not in accepted:
            raise ValueError(
                f"`{name}` has no argument `{keyword}`."
                f"{did_you_mean(keyword, accepted)} Received: { ({keyword: value}) }"
            )


def check_number(
    name: str,
    value: Any,
    *,
    whole: bool = False,
    lowest: float = 0,
    highest: float = math.inf,
) -> None:
    """Refuses what is not a finite number within the limits."""
    fits = is_integer(value) if whole else is_number(value)
    if not fits or not lowest <= value <= highest or value == math.inf:
        what = "an integer" if whole else "a number"
        limit = "" if highest == math.inf else f" and <= {highest:g}"
        raise ValueError(
            f"`{name}` must be {what} >= {lowest:g}{limit}. Received: {name}={value!r}"
        )


def check_positive_integer(name: str, value: Any) -> int:
    check_number(name, value, whole=True, lowest=1)
    return int(value)


def check_count(name: str, value: Any) -> None:
    """Refuses what is neither a positive integer nor `None`."""
    if value is not None:
        check_positive_integer(name, value)


def check_input_shape(input_shape: Any) -> tuple:
    """The shape of an image as a tuple; sizes may be `None`."""
    is_sequence = isinstance(input_shape, Iterable)
    sizes: tuple[Any, ...] = tuple(input_shape) if is_sequence else ("",)
    if not all(n is None or (is_integer(n) and n > 0) for n in sizes):
        raise ValueError(
            "`input_shape` must be the shape of an image, (*spatial, channels). "
            f"Received: input_shape={input_shape!r}"
        )
    return tuple(size if size is None else int(size) for size in sizes)


def check_positive(name: str, value: Any) -> float:
    if not is_positive(value):
        raise ValueError(
            f"`{name}` must be a finite, positive number. Received: {name}={value!r}"
        )
    return float(value)


def check_sigma0(sigma0: Any) -> tuple[float, ...]:
    scales = tuple(sigma0) if isinstance(sigma0, Iterable) else ()
    if not scales or not all(map(is_positive, scales)):
        raise ValueError(
            "`sigma0` must be a non-empty sequence of finite, positive numbers. "
            f"Received: sigma0={sigma0!r}"
        )
    return tuple(map(float, scales))


def check_epsilon(epsilon: Any) -> float:
    if not (is_number(epsilon) and 0 < epsilon < 1):
        raise ValueError(f"`epsilon` must be in (0, 1). Received: epsilon={epsilon!r}")
    return float(epsilon)


def check_reach(sigma: float, sizes: Sequence[int | None], origin: str = "") -> None:
    """Refuses a Gaussian that is wider than the image along every axis.

    `origin` tells where this `sigma` comes from.
    """
    if all(size is not None and sigma > size for size in sizes):
        raise ValueError(
            "The scale reaches far beyond the image: `sigma` must not exceed the "
            f"image's size. Received: sigma={sigma:g}{origin and f' ({origin})'} for "
            f"an image of {tuple(sizes)} pixels"
        )


def check_canvas(canvas: Any) -> tuple[int, int]:
    """`canvas` as (height, width)."""
    pair = canvas if isinstance(canvas, (tuple, list)) else (canvas, canvas)
    if len(pair) != 2 or not all(is_integer(n) and n >= 1 for n in pair):
        raise ValueError(
            "`canvas` must be a positive integer or a pair (height, width) of them. "
            f"Received: canvas={canvas!r}"
        )
    return int(pair[0]), int(pair[1])
