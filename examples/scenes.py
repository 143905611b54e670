"""Synthetic scenes: discs, squares and crosses of several sizes on a canvas."""

import dataclasses
from collections.abc import Sequence

import numpy as np

CLASSES = ("disc", "square", "cross")
CANVAS = 64  # pixels
NOISE = 0.05


@dataclasses.dataclass(frozen=True)
class Thing:
    """An object in a scene; its center and its size, the diameter, in pixels."""

    kind: int
    row: float
    column: float
    size: float

    def mask(self) -> np.ndarray:
        """Where it is, `(CANVAS, CANVAS)` bool."""
        y = np.abs(np.arange(CANVAS)[:, None] - self.row) / self.size
        x = np.abs(np.arange(CANVAS)[None, :] - self.column) / self.size
        bar, end = np.minimum(y, x), np.maximum(y, x)
        if CLASSES[self.kind] == "cross":
            return (bar <= 1 / 8) & (end <= 1 / 2)
        if CLASSES[self.kind] == "square":
            return end <= 0.45
        return np.hypot(y, x) <= 1 / 2


@dataclasses.dataclass(frozen=True)
class Scenes:
    """Images `(N, CANVAS, CANVAS, 1)` in [0, 1], and the objects in each of them."""

    images: np.ndarray
    things: Sequence[Sequence[Thing]]

    def masks(self) -> np.ndarray:
        """`(N, CANVAS, CANVAS, class)`, 1 where an object of the class is."""
        masks = np.zeros((*self.images.shape[:3], len(CLASSES)), "float32")
        for mask, scene in zip(masks, self.things, strict=True):
            for thing in scene:
                mask[thing.mask(), thing.kind] = 1
        return masks


def make_scenes(count: int, sizes: Sequence[float], seed: int, most: int = 3) -> Scenes:
    """Scenes of one to `most` objects that do not touch, of any of these sizes."""
    random = np.random.default_rng(seed)
    scenes = [
        _things(random, sizes, random.integers(1, most + 1)) for _ in range(count)
    ]
    images = [image_of(random, scene) for scene in scenes]
    return Scenes(np.stack(images)[..., None].astype("float32"), scenes)


def _things(random: np.random.Generator, sizes: Sequence[float], count: int):
    things: list[Thing] = []
    for size in random.choice(sizes, count):
        for _ in range(20):  # attempts to find a place
            row, column = random.uniform(size / 2 + 1, CANVAS - size / 2 - 2, 2)
            if all(_apart(thing, row, column, size) for thing in things):
                kind = int(random.integers(len(CLASSES)))
                things.append(Thing(kind, row, column, float(size)))
                break
    return things


def _apart(thing: Thing, row: float, column: float, size: float) -> bool:
    distance = max(abs(thing.row - row), abs(thing.column - column))
    return distance > (thing.size + size) / 2 + 2


def image_of(random: np.random.Generator, scene: Sequence[Thing]) -> np.ndarray:
    """A noisy picture of the objects, `(CANVAS, CANVAS)`."""
    image = np.full((CANVAS, CANVAS), 0.2)
    for thing in scene:
        image[thing.mask()] += random.uniform(0.4, 0.7)
    return np.clip(image + NOISE * random.normal(size=image.shape), 0, 1)
