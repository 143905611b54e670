"""Synthetic scenes: discs, squares and crosses of several sizes on a canvas."""

import dataclasses
from collections.abc import Sequence

import numpy as np

SHAPES = ("disc", "square", "cross")
_NOISE = 0.05
_ATTEMPTS = 20  # to find a place for an object


@dataclasses.dataclass(frozen=True)
class Shape:
    """An object in a scene.

    Args:
        kind: Its class, an index of `SHAPES`.
        row, column: Its center, in pixels.
        size: Its diameter, in pixels.
    """

    kind: int
    row: float
    column: float
    size: float

    def mask(self, canvas: int) -> np.ndarray:
        """The pixels of the object, `(canvas, canvas)` bool."""
        y = np.abs(np.arange(canvas)[:, None] - self.row) / self.size
        x = np.abs(np.arange(canvas)[None, :] - self.column) / self.size
        bar, end = np.minimum(y, x), np.maximum(y, x)
        if SHAPES[self.kind] == "cross":
            return (bar <= 1 / 8) & (end <= 1 / 2)
        if SHAPES[self.kind] == "square":
            return end <= 0.45
        return np.hypot(y, x) <= 1 / 2


@dataclasses.dataclass(frozen=True, eq=False)
class Scenes:
    """Images and the objects in them.

    Attributes:
        images: `(N, canvas, canvas, 1)` float32 in [0, 1].
        objects: For each image, each `Shape` in it.
    """

    images: np.ndarray
    objects: Sequence[Sequence[Shape]]

    def masks(self) -> np.ndarray:
        """`(N, canvas, canvas, class)` float32, 1 where an object of the class is."""
        masks = np.zeros((*self.images.shape[:3], len(SHAPES)), "float32")
        for mask, scene in zip(masks, self.objects, strict=True):
            for shape in scene:
                mask[shape.mask(len(mask)), shape.kind] = 1
        return masks


def random_scenes(
    count: int, sizes: Sequence[float], seed: int, most: int = 3, canvas: int = 64
) -> Scenes:
    """Scenes of one to `most` objects that do not touch, to try a detector on.

    Args:
        count: Number of scenes.
        sizes: Sizes of the objects in pixels, drawn with equal probability.
        seed: Random seed.
        most: Largest number of objects in a scene.
        canvas: Side of the images in pixels.

    Returns:
        The `Scenes`.

    Example:

    >>> random_scenes(2, [14, 20], seed=0).images.shape
    (2, 64, 64, 1)
    """
    random = np.random.default_rng(seed)
    scenes = [
        _objects(random, sizes, int(random.integers(1, most + 1)), canvas)
        for _ in range(count)
    ]
    return _drawn(random, scenes, canvas)


def centered_shapes(count: int, size: float, seed: int, canvas: int = 64) -> Scenes:
    """Scenes of one object near the center, to try a classifier on.

    Args:
        count: Number of scenes.
        size: Size of the objects in pixels.
        seed: Random seed.
        canvas: Side of the images in pixels.

    Returns:
        The `Scenes`.

    Example:

    >>> centered_shapes(3, 18, seed=0).images.shape
    (3, 64, 64, 1)
    """
    random = np.random.default_rng(seed)
    kinds = random.integers(len(SHAPES), size=count)
    centers = canvas / 2 + random.uniform(-1, 1, size=(count, 2))
    pairs = zip(kinds, centers, strict=True)
    scenes = [[Shape(int(kind), y, x, size)] for kind, (y, x) in pairs]
    return _drawn(random, scenes, canvas)


def _objects(random: np.random.Generator, sizes, count: int, canvas: int):
    objects: list[Shape] = []
    for size in random.choice(sizes, count):
        for _ in range(_ATTEMPTS):
            row, column = random.uniform(size / 2 + 1, canvas - size / 2 - 2, 2)
            if all(
                max(abs(other.row - row), abs(other.column - column))
                > (other.size + size) / 2 + 2
                for other in objects
            ):
                kind = int(random.integers(len(SHAPES)))
                objects.append(Shape(kind, row, column, float(size)))
                break
    return objects


def _drawn(random: np.random.Generator, scenes, canvas: int) -> Scenes:
    """Noisy pictures of the objects."""
    images = np.full((len(scenes), canvas, canvas), 0.2)
    for image, scene in zip(images, scenes, strict=True):
        for shape in scene:
            image[shape.mask(canvas)] += random.uniform(0.4, 0.7)
        image[...] += _NOISE * random.normal(size=image.shape)
    return Scenes(np.clip(images, 0, 1)[..., None].astype("float32"), scenes)
