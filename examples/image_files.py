"""Image files: those of a folder by their classes, and the pixels of one."""

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from PIL import Image, ImageOps

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png"}
MODES = {1: "L", 3: "RGB"}
# A shape that no photo has: resized by its shorter side it would be gigantic.
LONGEST = 32


class Images(NamedTuple):
    """Images `(N, H, W, channel)` uint8, read at size factor 2, and labels."""

    pixels: np.ndarray
    labels: np.ndarray


def read_folder(
    folder: Path, side: int, channels: int, seed: int
) -> tuple[Images, Images, list[str]]:
    """Images for training, those that are held out, and the names of the classes."""
    found = (path for path in folder.iterdir() if path.is_dir())
    classes = sorted(path.name for path in found if not path.name.startswith("."))
    if len(classes) < 2:
        raise ValueError(
            f"{folder} must have a subfolder of images for each of at least two "
            f"classes. Received: {classes}"
        )
    images = Images(*read_classes([folder / name for name in classes], side, channels))
    order = np.random.default_rng(seed).permutation(len(images.labels))
    held_out = len(order) // 5
    test, train = (
        Images(images.pixels[part], images.labels[part])
        for part in (order[:held_out], order[held_out:])
    )
    missing = sorted(set(classes) - {classes[label] for label in train.labels})
    if missing:
        raise ValueError(
            f"Each class must have images to train on. Received: {folder} with none "
            f"for {missing}, after a fifth of all images was held out"
        )
    return train, test, classes


def read_classes(
    folders: Sequence[Path], side: int, channels: int
) -> tuple[np.ndarray, np.ndarray]:
    """All images that can be read, and the number of the folder that each is in."""
    pixels, labels = [np.empty((0, side, side, channels), "uint8")], []
    for label, folder in enumerate(folders):
        for path in image_files(folder):
            try:
                image = read_image(path, channels)
            except ValueError as error:
                print(f"left out: {error}")
            else:
                pixels.append(squared(image, side)[None])
                labels.append(label)
    return np.concatenate(pixels), np.array(labels, "int32")


def squared(image: np.ndarray, side: int) -> np.ndarray:
    """The central square of an image, resized to `side` pixels."""
    height, width, _ = image.shape
    shorter = min(height, width)
    top, left = (height - shorter) // 2, (width - shorter) // 2
    square = image[top : top + shorter, left : left + shorter]
    # Of TensorFlow's methods, the one that does not alias in large photos.
    resized = tf.image.resize(square, (side, side), "area")
    return np.rint(resized).astype("uint8")


def fingerprint(train: Images, test: Images) -> str:
    """What tells these images, and which of them are held out, from any others."""
    digest = hashlib.sha256()
    for images in (train, test):
        digest.update(images.labels.tobytes() + images.pixels.tobytes())
    counts = f"{len(train.labels)} and {len(test.labels)} held out"
    return f"{counts}, {digest.hexdigest()[:12]}"


def image_files(folder: Path) -> list[Path]:
    """The image files anywhere below a folder, in order, but for hidden ones."""
    files = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            files += image_files(path)
        elif path.suffix.lower() in SUFFIXES:
            files.append(path)
    return files


def read_image(path: Path, channels: int) -> np.ndarray:
    """The pixels of a JPEG, PNG, BMP or GIF file: `(height, width, channels)` uint8.

    They are the way up that they are shown (EXIF). A `ValueError` names a file that is
    none of these, is damaged, has more pixels than Pillow takes for an honest image (89
    million), or sides that differ more than 32-fold.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=("BMP", "GIF", "JPEG", "PNG")) as image:
                _check_shape(*image.size)
                return _pixels(ImageOps.exif_transpose(image), channels)
    except Exception as error:  # Pillow lets through whatever damage raises
        raise ValueError(f"{path} cannot be read as an image: {error}") from error


def _check_shape(width: int, height: int) -> None:
    if max(width, height) > LONGEST * min(width, height):
        raise ValueError(
            f"its sides must not differ more than {LONGEST}-fold. "
            f"Received: {width}x{height} pixels"
        )


def _pixels(image: Image.Image, channels: int) -> np.ndarray:
    if image.mode.startswith("I"):  # 16 bits, which Pillow would cut off at 255
        image = Image.fromarray((np.asarray(image) // 257).astype("uint8"))
    pixels = np.array(image.convert(MODES[channels]))
    return pixels.reshape(*pixels.shape[:2], channels)
