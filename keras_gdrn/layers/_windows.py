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

from keras import ops

from keras_gdrn.layers._grids import joined, split
from keras_gdrn.layers._maximum import maximum


class Window(NamedTuple):
    """The central part of the maps at one scale.

    Attributes:
        sizes: In pixels, along each axis.
        influence: Standard deviation, in pixels, of the influence that its positions
            have on the answer; infinite where all count alike.
    """

    sizes: tuple
    influence: float = math.inf


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
        extent: Half-width of the windows, in standard deviations of the influence on
            the answer; `None` for whole maps.
        deviation: That standard deviation, in units of the initial scale.
    """

    spatial: tuple
    sigma0: tuple[float, ...]
    subpixel: bool = False
    extent: float | None = None
    deviation: float = 0.0

    def before(self, sigma: float) -> "Windows":
        """Of the input of a layer at scale `sigma` whose output has these windows."""
        deviation = deviation_before(self.deviation, sigma)
        return dataclasses.replace(self, deviation=deviation)

    @property
    def steps(self) -> list[float]:
        """Step of the grid, in pixels, on which each scale has its kernels."""
        return [min(scale, 1.0) if self.subpixel else 1.0 for scale in self.sigma0]

    @functools.cached_property
    def of_scales(self) -> list[Window]:
        if self.extent is None:
            return [Window(self.spatial)] * len(self.sigma0)
        return [self._of(self.extent, self.deviation * scale) for scale in self.sigma0]

    def _of(self, extent: float, deviation: float) -> Window:
        sizes = tuple(_central(size, extent * deviation) for size in self.spatial)
        # A pixel has a width of its own.
        return Window(sizes, max(deviation, 0.5))


def _central(size, reach: float):
    """Pixels within `reach` of the center, which may lie between two of them."""
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
    parts = [
        part if _same_size(*pair) else _cut(part, *(window.sizes for window in pair))
        for part, pair in zip(parts, pairs, strict=True)
    ]
    return _packed(parts, within, x.shape[-1])


def central(x, windows: Windows) -> Any:
    """Mean of the positions at the center of packed maps, scales in the batch.

    One along an axis of odd size, two along one of even size.
    """
    center = dataclasses.replace(windows, extent=1.0, deviation=0.0)
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
    return all(a is b or (isinstance(a, int) and a == b) for a, b in pairs)


def _cut(x, spatial: tuple, sizes: tuple):
    """The central part of maps, positions first and flat, as they come."""
    x = ops.reshape(x, (*spatial, -1))
    margins = [(whole - size) // 2 for whole, size in zip(spatial, sizes, strict=True)]
    part = x[tuple(slice(m, m + size) for m, size in zip(margins, sizes, strict=True))]
    return ops.reshape(part, (math.prod(sizes), -1))


def unfolded(x, scales: int):
    """`(positions, batch, channels)` from whole maps, scales folded into the batch."""
    folded, *spatial, channels = ops.shape(x)
    batch = folded // scales
    x = ops.reshape(x, (scales, batch, *spatial, channels))
    positions = scales * math.prod(spatial)
    return ops.reshape(ops.moveaxis(x, 1, -2), (positions, batch, channels))


def folded(x, scales: int, spatial: tuple):
    """The inverse of `unfolded`."""
    channels = x.shape[-1]
    x = ops.reshape(x, (scales, *spatial, -1, channels))
    return ops.reshape(ops.moveaxis(x, -2, 1), (-1, *spatial, channels))
