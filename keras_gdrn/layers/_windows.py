"""Windows: the central parts of maps, as large as the answer needs them.

Inside `ScaleChannels` the maps of all scales travel *packed*: positions first, the
window of one scale after that of another, as `(positions, batch, 1, …, channels)` of
the rank that the network's own maps have. A layer that acts at each position works on
packed maps as it is, and batch statistics are joint by themselves.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_gdrn.kernels import Samples
from keras_gdrn.layers._grids import Grid, joined, split
from keras_gdrn.layers._maximum import maximum


class Window(NamedTuple):
    """The central part of the maps at one scale.

    Attributes:
        sizes: Number of values along each axis.
        spacing: Distance of neighboring values, in pixels.
        influence: Standard deviation, in pixels, of the influence that its positions
            have on the answer; infinite where all count alike.
        least_weight: As for `kernels.Samples`.
    """

    sizes: tuple
    spacing: int = 1
    influence: float = math.inf
    least_weight: float = 0.01

    @property
    def axes(self) -> list[Samples]:
        return [Samples(size, *self[1:]) for size in self.sizes]


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """What may be left out, all from one number.

    Attributes:
        tolerance: Share of the influence on the answer, relative to that of the center,
            that may be left out.
        extent: Half-width of the windows, in standard deviations of the influence;
            `None` for whole maps.
    """

    tolerance: float = 0.0
    extent: float | None = None

    @property
    def epsilon(self) -> float:
        """Least relative tolerance of the operators: below the least weight."""
        return self.tolerance / 1.5

    @property
    def least_weight(self) -> float:
        return max(self.tolerance, 0.01)

    def spacing(self, sigma: float) -> int:
        """Distance of the values of a map that is written and read at this scale.

        A Gaussian passes frequencies up to `B = q / σ`, where it has fallen to the
        tolerance, `q = √(-2 ln tolerance)`. An activation function spreads them, and
        sampling folds what is near `2π / spacing` into what is read: with a spacing of
        at most `2π / 5B`, from beyond `4B`. A power of two, so that coarse samples are
        among the finer ones.
        """
        if not self.tolerance or not sigma:
            return 1
        largest = 0.4 * math.pi * sigma / extent_of(self.tolerance)
        return 2 ** max(0, math.floor(math.log2(largest)))


def extent_of(tolerance: float) -> float:
    """Where the influence has fallen to the tolerance, in standard deviations."""
    return math.sqrt(-2 * math.log(tolerance))


def tolerance_of(extent: float) -> float:
    return math.exp(-(extent**2) / 2)


def deviation_before(deviation: float, sigma: float) -> float:
    """Standard deviation of the influence on the answer, on the input of a layer.

    Args:
        deviation: That of its output; zero for the last layer, which is read at the
            center. It counts twice: a derivative reaches farther than its Gaussian,
            and the influence is a Gaussian only where many layers come together.
        sigma: Scale of the layer.
    """
    times = 1 if deviation else 2
    return math.sqrt(deviation**2 + times * sigma**2)


@dataclasses.dataclass(frozen=True)
class Windows:
    """The windows of a map at all scales.

    Attributes:
        spatial: Sizes of the whole maps.
        sigma0: Initial scales.
        subpixel: Whether those below one pixel look between the pixels.
        accuracy: What may be left out.
        deviation: Standard deviation of the influence on the answer, in units of the
            initial scale.
        sigma: Smallest scale at which the map is written or read, in the same units;
            zero where it is needed at every pixel.
    """

    spatial: tuple
    sigma0: tuple[float, ...]
    subpixel: bool = False
    accuracy: Accuracy = Accuracy()
    deviation: float = 0.0
    sigma: float = 0.0

    def before(self, sigma: float) -> "Windows":
        """Of the map within a block, between layers at scale `sigma`."""
        deviation = deviation_before(self.deviation, sigma)
        return dataclasses.replace(self, deviation=deviation, sigma=sigma)

    @property
    def steps(self) -> list[float]:
        """Step of the grid, in pixels, on which each scale has its kernels."""
        return [min(scale, 1.0) if self.subpixel else 1.0 for scale in self.sigma0]

    @functools.cached_property
    def of_scales(self) -> list[Window]:
        return [self._at(scale) for scale in self.sigma0]

    def _at(self, scale: float) -> Window:
        known = all(isinstance(size, int) for size in self.spatial)
        spacing = self.accuracy.spacing(scale * self.sigma) if known else 1
        reach = influence = math.inf
        if self.accuracy.extent is not None:
            reach = self.accuracy.extent * scale * self.deviation
            # A pixel has a width of its own.
            influence = max(scale * self.deviation, 0.5)
        sizes = tuple(_central(size, reach, spacing) for size in self.spatial)
        return Window(sizes, spacing, influence, self.accuracy.least_weight)


def _central(size, reach: float, spacing: int):
    """Values within `reach` of the center, which may lie between two pixels."""
    if spacing > 1:  # one at the center itself, the others up to the edge and beyond
        edge = math.ceil(size / (2 * spacing) - 0.5)
        return 2 * int(min(edge, math.ceil(min(reach, size) / spacing - 1e-6))) + 1
    if math.isinf(reach):
        return size
    half, odd = math.ceil(reach - 1e-6), size % 2
    wanted = 2 * half + odd if half else 2 - odd
    return min(size, wanted) if isinstance(size, int) else ops.minimum(size, wanted)


def packed(images, windows: Windows) -> Any:
    """Packed maps from `(batch, *spatial, channels)`."""
    x = ops.moveaxis(images, 0, -2)
    parts = [_cut(x, windows.spatial, window.sizes) for window in windows.of_scales]
    return _packed(parts, windows, images.shape[-1])


def maps_of(x, windows: Windows) -> list:
    """From packed maps, `(*sizes, batch, channels)` at each scale."""
    sizes = [window.sizes for window in windows.of_scales]
    parts = split(x, list(map(math.prod, sizes)))
    return [
        ops.reshape(part, (*of_scale, -1, x.shape[-1]))
        for part, of_scale in zip(parts, sizes, strict=True)
    ]


def cropped(x, windows: Windows, within: Windows) -> Any:
    """Packed maps on smaller windows."""
    pairs = list(zip(windows.of_scales, within.of_scales, strict=True))
    if all(_same_size(*pair) for pair in pairs):
        return x
    parts = split(x, [math.prod(window.sizes) for window, _ in pairs])
    parts = [_resampled(part, *pair) for part, pair in zip(parts, pairs, strict=True)]
    return _packed(parts, within, x.shape[-1])


def _resampled(part, window: Window, other: Window):
    """Values of a window at the positions of another, as they are or from neighbors."""
    if window.spacing == other.spacing:
        same = _same_size(window, other)
        return part if same else _cut(part, window.sizes, other.sizes)
    grid = Grid(part, window.sizes)
    for axis, ends in enumerate(zip(window.axes, other.axes, strict=True)):
        grid = grid.along(axis, cubic_interpolation(*ends))
    return grid.positions_first()


@functools.lru_cache(maxsize=256)
def cubic_interpolation(given: Samples, asked: Samples) -> np.ndarray:
    """Matrix of the cubic polynomial through the four nearest values, at positions."""
    place = (asked.positions - given.positions[0]) / given.spacing
    place = np.clip(place, 0, given.count - 1)
    first, offsets = np.floor(place).astype(int) - 1, np.arange(4)
    matrix = np.zeros((asked.count, given.count))
    for k in offsets:
        others = offsets[offsets != k]
        weight = np.prod(
            [(place - first - other) / (k - other) for other in others], axis=0
        )
        column = np.clip(first + k, 0, given.count - 1)
        np.add.at(matrix, (np.arange(asked.count), column), weight)
    return matrix


def central(x, windows: Windows) -> Any:
    """Mean of the positions at the center of packed maps, scales in the batch.

    One along an axis of odd size, two along one of even size.
    """
    center = dataclasses.replace(windows, accuracy=Accuracy(extent=1.0), deviation=0.0)
    x = cropped(x, windows, center)
    positions, batch, *_, channels = ops.shape(x)
    scales = len(windows.sigma0)
    x = ops.reshape(x, (scales, positions // scales, batch, channels))
    return ops.reshape(ops.mean(x, axis=1), (scales * batch, channels))


def maximal(x, windows: Windows) -> Any:
    """Maximum over the positions of packed maps, scales in the batch."""
    maps = maps_of(x, windows)
    return joined(
        [maximum(part, axis=tuple(range(len(part.shape) - 2))) for part in maps]
    )


def _packed(parts: list, windows: Windows, channels: int) -> Any:
    """Packed maps from those of each scale, positions first and flat."""
    positions = sum(math.prod(window.sizes) for window in windows.of_scales)
    ones = (1,) * (len(windows.spatial) - 1)
    return ops.reshape(joined(parts), (positions, -1, *ones, channels))


def _same_size(window: Window, other: Window) -> bool:
    # Sizes that only the graph knows are told apart as objects.
    pairs = zip(window.sizes, other.sizes, strict=True)
    return window.spacing == other.spacing and all(
        a is b or (isinstance(a, int) and a == b) for a, b in pairs
    )


def _cut(x, spatial: tuple, sizes: tuple):
    """The central part of maps, positions first and flat, as they come."""
    x = ops.reshape(x, (*spatial, -1))
    margins = [(whole - size) // 2 for whole, size in zip(spatial, sizes, strict=True)]
    # The gradient of TensorFlow's `x[m : m + size]` takes forty times as long.
    part = ops.slice(x, (*margins, 0), (*sizes, ops.shape(x)[-1]))
    return ops.reshape(part, (math.prod(sizes), -1))
