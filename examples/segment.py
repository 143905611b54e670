"""A segmentation head: trained on objects of two sizes, tested on four.

    python examples/segment.py

trains on synthetic scenes and prints the intersection over union for each class, at
sizes of the training, at others, and on a large image. The scale channels have no
spatial selection: their maps are pooled over scale, pixel by pixel.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import SHAPES, random_scenes
from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    ScalePooling,
)
from keras_gdrn.models import with_input_shape

SIGMA0 = (1.0, 1.4, 2.0, 2.8)
TRAINING_SIZES, TEST_SIZES = (14, 20), (10, 14, 20, 28)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", type=positive(int), default=600, help="in training")
    parser.add_argument("--tests", type=positive(int), default=60, help="of each size")
    parser.add_argument("--epochs", type=positive(int), default=2)
    parser.add_argument("--large", type=positive(int), default=1024, metavar="PIXELS")
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    model = segmentation_network()
    train = random_scenes(options.scenes, TRAINING_SIZES, seed=1)
    model.fit(train.images, train.masks(), 8, options.epochs, verbose=2)
    print("Intersection over union\nsize  " + "".join(f"{c:>8}" for c in SHAPES))
    side = options.large
    tests = {size: random_scenes(options.tests, [size], seed=2) for size in TEST_SIZES}
    tests["all"] = random_scenes(1, TEST_SIZES, seed=3, most=side // 8, canvas=side)
    for size, test in tests.items():
        network, start = with_input_shape(model, test.images.shape[1:]), time.time()
        scores = network.predict(test.images, batch_size=8, verbose=0)
        seconds = time.time() - start
        found = intersection_over_union(scores > 0, test.masks() > 0)
        note = "" if size in TRAINING_SIZES else "  (not in training)"
        note = f"  ({side}×{side} in {seconds:.0f} s)" if size == "all" else note
        print(f"{size:>4}  " + "".join(f"{value:8.3f}" for value in found) + note)


def class_maps(widths=(8, 12, 12), ratio=1.5) -> keras.Model:
    """One scale channel: a map of scores for each class, in full resolution."""
    x = image = keras.Input((64, 64, 1))
    x = GaussDerConv(widths[0], sigma=1.0, activation="relu")(x)
    for block, width in enumerate(widths[1:], start=1):
        x = GaussDerResidualBlock(width, sigma=ratio**block, zero_order=True)(x)
    rare = keras.initializers.Constant(-2.0)  # most pixels are of no class
    head = GaussDerConv(
        len(SHAPES), ratio ** len(widths), zero_order=True, bias_initializer=rare
    )
    return keras.Model(image, head(x))


def segmentation_network() -> keras.Model:
    """`(batch, y, x, class)`: the best score over all scales, at each pixel."""
    image = keras.Input((64, 64, 1))
    maps = ScaleChannels(class_maps(), SIGMA0)(image)  # (batch, scale, y, x, class)
    model = keras.Model(image, ScalePooling("max")(maps))
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(0.01), loss)
    # Otherwise TensorFlow traces the first step twice.
    model.optimizer.build(model.trainable_variables)
    return model


def intersection_over_union(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Intersection over union of each class, over all scenes together."""
    axes = (0, 1, 2)
    return (found & true).sum(axes) / np.maximum(1, (found | true).sum(axes))


if __name__ == "__main__":
    main()
