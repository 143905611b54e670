"""A folder of images of two classes."""

from pathlib import Path

import numpy as np
from PIL import Image


def write_image(path: Path, shape=(20, 14, 3), value=0) -> Path:
    """A JPEG file, if it is called so, or a PNG file: noise around a gray value."""
    noise = np.random.default_rng(value).integers(0, 60, shape) + value
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = "jpeg" if path.suffix == ".jpg" else "png"
    Image.fromarray(noise.astype("uint8")).save(path, kind)
    return path


def write_folder(folder: Path, count: int = 10) -> Path:
    """`count` dark and `count` bright images, each of another size."""
    for name, value in (("dark", 10), ("bright", 180)):
        for n in range(count):
            suffix = "png" if n % 2 else "jpg"
            path = folder / name / f"{n}.{suffix}"
            write_image(path, (12 + n, 30 - 2 * n, 3), value + n)
    return folder
