"""Image files: those of a folder by their classes, and the pixels of one."""

import hashlib
import os
import stat
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from PIL import Image, ImageOps

SUFFIXES = (".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png")
MODES = {1: "L", 3: "RGB"}
# A shape that no photo has: resized by its shorter side it would be gigantic.
LONGEST = 32
PART = 5  # one image of so many is held out
TOLD = 5  # names of files that are left out


class Images(NamedTuple):
    """Images `(N, H, W, channel)` uint8, read at size factor 2, and labels."""

    pixels: np.ndarray
    labels: np.ndarray


def read_folder(
    folder: Path, side: int, channels: int, seed: int
) -> tuple[Images, Images, list[str]]:
    """Images for training, those that are held out, and the names of the classes."""
    files = class_files(folder)
    classes = list(files)
    check_names(folder / name for name in classes)
    if len(classes) < 2:
        raise ValueError(
            f"{folder} must have a subfolder of images for each of at least two "
            f"classes. Received: {classes}"
        )
    images = read_files(files.values(), side, channels)
    order = np.random.default_rng(seed).permutation(len(images.labels))
    held_out = len(order) // PART
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
    if not held_out:
        raise ValueError(
            f"{folder} must have at least {PART} images that can be read, as a fifth "
            f"of them is held out. Received: {len(order)}"
        )
    return train, test, classes


def class_files(folder: Path) -> dict[str, list[Path]]:
    """The image files of each class, in order; it is told what else is there."""
    found, others = {}, []
    for path in visible(folder):
        if is_folder(path):
            found[path.name], more = image_files(path)
            others += more
        else:
            others.append(path)
    if others:
        names = ", ".join(map(str, others[:TOLD])) + ", ..." * (len(others) > TOLD)
        leave_out(
            f"{len(others)} other files or links to folders (an image must be in the "
            f"folder of a class and be named {' '.join(SUFFIXES)}): {names}"
        )
    return found


def read_files(classes: Iterable[Sequence[Path]], side: int, channels: int) -> Images:
    """All images that can be read of the files of each class."""
    pixels, labels = [np.empty((0, side, side, channels), "uint8")], []
    for label, files in enumerate(classes):
        for path in files:
            try:
                image = read_image(path, channels)
            except ValueError as error:
                leave_out(str(error))
            else:
                pixels.append(squared(image, side)[None])
                labels.append(label)
    return Images(np.concatenate(pixels), np.array(labels, "int32"))


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


def image_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The image files anywhere below a folder, in order, and the other files."""
    files, others, paths = [], [], [folder]
    while paths:  # no recursion, as folders may be nested a thousandfold
        path = paths.pop()
        if is_folder(path):
            try:
                paths += reversed(visible(path))
            except OSError as error:
                leave_out(f"{path} cannot be read: {error}")
        elif path.suffix.lower() in SUFFIXES and not os.path.isdir(path):
            files.append(path)
        else:
            others.append(path)
    return files, others


def visible(folder: Path) -> list[Path]:
    """What is in a folder, in order, but for what is hidden."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def is_folder(path: Path) -> bool:
    """Whether it is a folder itself: one that is linked may be read already."""
    # Unlike `Path.is_dir`, raises no error where nothing may be looked at.
    return os.path.isdir(path) and not path.is_symlink()


def check_names(paths: Iterable[Path]) -> None:
    """Raises an error for a name that no text file can hold, as Linux allows it."""
    for name in map(str, paths):
        if name != printable(name):
            raise ValueError(
                "The names of folders and of networks must be UTF-8. "
                f"Received: {printable(name)}"
            )


def printable(text: str) -> str:
    """Text with escapes for what is not UTF-8, as names of files may be."""
    return text.encode("utf-8", "backslashreplace").decode()


def leave_out(text: str) -> None:
    print(f"left out: {printable(text)}")


def read_image(path: Path, channels: int) -> np.ndarray:
    """The pixels of a JPEG, PNG, BMP or GIF file: `(height, width, channels)` uint8.

    They are the way up that they are shown (EXIF), over white where they are
    transparent, and of an animation the first. A `ValueError` names a file that is none
    of these, is damaged, has more pixels than Pillow takes for an honest image (89
    million), or sides that differ more than 32-fold.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise ValueError("it must be a regular file.")
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
    if image.mode.endswith("A") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    pixels = np.array(image.convert(MODES[channels]))
    return pixels.reshape(*pixels.shape[:2], channels)
