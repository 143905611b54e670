"""The space of a search: a set of values for each hyperparameter."""

import dataclasses
import math
from typing import Any, NamedTuple

import keras_tuner
import numpy as np

from keras_gdrn._checks import check_choice, check_number, is_number, is_positive
from keras_gdrn.layers.scale_pooling import MODES as SCALE_POOLINGS
from keras_gdrn.layers.spatial_selection import MODES as SPATIAL_SELECTIONS
from keras_gdrn.models import ARCHITECTURES, SIX_SCALES
from keras_gdrn.training import RECIPES

# The paper's values for CIFAR-10.
_STEM_WIDTH, *_WIDTHS = ARCHITECTURES["rescaled_cifar10"].widths
_PAPER = {
    **vars(ARCHITECTURES["rescaled_cifar10"]),
    **vars(RECIPES["rescaled_cifar10"]),
    "blocks": len(_WIDTHS),
    "stem_width": _STEM_WIDTH,
    "separable_share": 0.0,
    "order": 2,
    "sigma0_spacing": 2**0.5,
}


# Hyperparameters that can have a `Range`.
_CONTINUOUS = ("ratio", "separable_share", "scale_dropout", "sigma0_spacing", "density")
_CONTINUOUS += ("learning_rate", "weight_decay", "label_smoothing")


class Range(NamedTuple):
    """All numbers from the lowest to the highest, in place of a set.

    They are drawn uniformly on a logarithmic scale; on a linear one if the lowest is 0.

    Example:

    >>> SearchSpace(ratio=Range(1.1, 1.5), learning_rate=Range(1e-3, 1e-2))
    """

    lowest: float
    highest: float


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """The values that a search chooses from; a set of one value fixes it.

    A number that need not be an integer can also be searched in a `Range`.

    The sets contain the values of the paper's networks and recipes. Keras Tuner's
    default for each is the paper's value for CIFAR-10 or, where it is not in the set,
    the middle one.

    Args:
        ratio: Ratio r between the scales of successive layers.
        blocks: Number of residual blocks.
        stem_width: Width of the first layer.
        width: Width of a block. Each has a separate hyperparameter, `width_1`,
            `width_2`, …, which exists only if there are so many blocks.
        scale_pooling, spatial_selection, zero_order, order: As `gauss_der_resnet`.
        separable_share: Fraction of the blocks, from the last, that are
            depthwise-separable, rounded to whole blocks.
        scale_dropout: Probability of leaving a scale channel out of the pooling.
        sigma0_spacing: Ratio of successive initial scales σ_0 > 1.
        sigma0_range: The lowest σ_0 and the highest allowed, in pixels; not searched.
        density: As `ScaleChannels`; by default it is not searched.
        learning_rate, weight_decay, label_smoothing, batch_size: As `Recipe`.

    Raises:
        ValueError: If a set is empty or no tuple or list, a `Range` or `sigma0_range`
            is invalid, or a spacing is not above 1.
    """

    ratio: tuple[float, ...] = (1.1, 1.13, 1.16, 1.2, 1.22, 1.27, 1.32, 1.4, 1.5)
    blocks: tuple[int, ...] = (4, 6, 8)
    stem_width: tuple[int, ...] = (24, 48)
    width: tuple[int, ...] = (24, 32, 48, 64, 128, 192, 256)
    scale_pooling: tuple[str, ...] = SCALE_POOLINGS
    spatial_selection: tuple[str, ...] = ("center", "max")
    zero_order: tuple[bool, ...] = (False, True)
    separable_share: tuple[float, ...] = (0.0, 0.5)
    order: tuple[int, ...] = (2, 3)
    scale_dropout: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3)
    sigma0_spacing: tuple[float, ...] = (2**0.25, 2**0.5, 2.0)
    sigma0_range: tuple[float, float] = (SIX_SCALES[0], SIX_SCALES[-1])
    density: tuple[float, ...] = (1.0,)
    learning_rate: tuple[float, ...] = (0.0025, 0.005, 0.01, 0.02)
    weight_decay: tuple[float, ...] = (0.0125, 0.025, 0.05)
    label_smoothing: tuple[float, ...] = (0.0, 0.1)
    batch_size: tuple[int, ...] = (17, 32, 45, 64, 128)

    def __post_init__(self):
        for name, given in vars(self).items():
            values = _as_python_numbers(given)
            object.__setattr__(self, name, values)
            if isinstance(values, Range):
                _check_range(name, values)
            if not isinstance(values, tuple) or not values:
                raise ValueError(
                    f"`{name}` must be a tuple or list of at least one value. "
                    f"Received: {name}={values!r}"
                )
        for mode in self.scale_pooling:
            check_choice("scale_pooling", mode, SCALE_POOLINGS)
        for mode in self.spatial_selection:
            check_choice("spatial_selection", mode, SPATIAL_SELECTIONS)
        for blocks in self.blocks:
            check_number("blocks", blocks, whole=True)
        ends = self.sigma0_range
        positive = len(ends) == 2 and all(map(is_positive, ends)) and ends[0] <= ends[1]
        if not positive or min(self.sigma0_spacing) <= 1:
            raise ValueError(
                "`sigma0_range` must be a positive lowest and highest σ_0, and "
                "`sigma0_spacing` must be above 1. Received: sigma0_range="
                f"{self.sigma0_range!r}, sigma0_spacing={self.sigma0_spacing!r}"
            )

    @classmethod
    def for_images(cls, side: int) -> "SearchSpace":
        """The default space, limited to what fits images of `side` pixels.

        At σ_0 = 1 no last layer has σ beyond the image, and no σ_0 is beyond an eighth
        of it. For images of 39 pixels and more, it is `SearchSpace()`.
        """
        layers, (lowest, highest) = max(cls.blocks) + 1, cls.sigma0_range
        return cls(
            ratio=tuple(r for r in cls.ratio if r**layers <= side) or cls.ratio[:1],
            sigma0_range=(lowest, max(lowest, min(highest, side / 8))),
        )

    def only(self, *names: str) -> "SearchSpace":
        """The space with only these sets; all others are fixed at their default."""
        sets = [name for name in vars(self) if name != "sigma0_range"]
        if unknown := set(names) - set(sets):
            raise ValueError(f"`names` must be in {sets}. Received: {sorted(unknown)}")
        fixed = {name: (self._default(name),) for name in sets if name not in names}
        return dataclasses.replace(self, **fixed)

    def architecture(self, hp: keras_tuner.HyperParameters) -> dict[str, Any]:
        """The arguments of `gauss_der_resnet` that `hp` chooses."""
        names = ("ratio", "scale_pooling", "spatial_selection", "order")
        chosen = self._chosen(hp, *names, "scale_dropout", "blocks", "zero_order")
        chosen |= self._chosen(hp, "density", "stem_width")
        blocks, widths = chosen.pop("blocks"), [chosen.pop("stem_width")]
        for block in range(1, max(self.blocks) + 1):
            # Chosen for any number of blocks, so that the space contains it; it is None
            # if there are fewer.
            with hp.conditional_scope("blocks", [n for n in self.blocks if n >= block]):
                paper = _WIDTHS[min(block, len(_WIDTHS)) - 1]
                default = paper if paper in self.width else self._default("width")
                width = _choice(hp, f"width_{block}", self.width, default)
                widths += [] if width is None else [width]
        share, spacing = self._chosen(hp, "separable_share", "sigma0_spacing").values()
        lowest, highest = self.sigma0_range
        steps = math.floor(math.log(highest / lowest) / math.log(spacing) + 1e-9)
        return {
            **chosen,
            "widths": widths,
            "separable_blocks": round(share * blocks),
            "sigma0": [lowest * spacing**step for step in range(steps + 1)],
        }

    def training(self, hp: keras_tuner.HyperParameters) -> dict[str, Any]:
        """The fields of a `Recipe` that `hp` chooses."""
        names = ("learning_rate", "weight_decay", "label_smoothing", "batch_size")
        return self._chosen(hp, *names)

    def _chosen(self, hp: keras_tuner.HyperParameters, *names: str) -> dict[str, Any]:
        return {
            name: _choice(hp, name, getattr(self, name), self._default(name))
            for name in names
        }

    def _default(self, name: str) -> Any:
        values, paper = getattr(self, name), _PAPER.get(name)
        if isinstance(values, Range):
            lowest, highest = values
            inside = paper is not None and lowest <= paper <= highest
            return paper if inside else (lowest + highest) / 2
        return paper if paper in values else values[len(values) // 2]


def _choice(hp: keras_tuner.HyperParameters, name: str, values: Any, default) -> Any:
    """What a trial chooses from a set or a `Range`, or has stored."""
    if isinstance(values, Range):
        even = "log" if values.lowest else "linear"
        value = hp.Float(name, *values, sampling=even, default=default)
        is_known = values.lowest <= value <= values.highest
    else:
        value = hp.Choice(name, list(values), default=default)
        is_known = value in (*values, None)  # none of the width of a missing block
    if not is_known:
        raise ValueError(
            f"`{name}`={value!r} of a stored trial is not in the space {values!r}: "
            "give another search another `project_name`"
        )
    # `True`, not 1
    return values[values.index(value)] if value in values else value


def _check_range(name: str, values: Range) -> None:
    are_numbers = all(map(is_number, values))
    if name not in _CONTINUOUS or not are_numbers or not 0 <= values[0] < values[1]:
        raise ValueError(
            "A `Range` must go from one number >= 0 to a larger one, for one of "
            f"{_CONTINUOUS}. Received: {name}={values!r}"
        )


def _as_python_numbers(values: Any) -> Any:
    """The values as Python numbers; Keras Tuner takes no others."""
    if not isinstance(values, tuple | list):
        return values
    own = [v.item() if isinstance(v, np.generic) else v for v in values]
    return Range(*own) if isinstance(values, Range) else tuple(own)
