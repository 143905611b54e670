"""A folder of images of two classes, and a network to ask about them."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_gdrn.models import gauss_der_resnet
from tests.layers._contract import randomize


def write_image(path: Path, shape=(20, 14), value=0, channels=3) -> Path:
    """A PNG or JPEG file: noise around a gray value."""
    noise = np.random.default_rng(value).integers(0, 60, (*shape, channels))
    encode = tf.io.encode_png if path.suffix == ".png" else tf.io.encode_jpeg
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode((noise + value).astype("uint8")).numpy())
    return path


def write_folder(folder: Path, count: int = 10) -> Path:
    """`count` dark and `count` bright images, each of another size."""
    for name, value in (("dark", 10), ("bright", 180)):
        for n in range(count):
            suffix = "png" if n % 2 else "jpg"
            path = folder / name / f"{n}.{suffix}"
            write_image(path, (12 + n, 30 - 2 * n), value + n)
    return folder


def network(shape=(16, 16, 3), **options):
    """Of two classes and two scales, whose scores are positive."""
    options = {"order": 1, "spatial_selection": "max", **options}
    model = gauss_der_resnet(shape, 2, [4], 1.5, [0.7, 1.4], **options)
    randomize(model)
    model.get_layer("scale_channels").network.get_layer("head").bias.assign([3.0, 4.0])
    return model
