"""A detector: trained on objects of two sizes, tested on four.

    python examples/detect.py

The scale channels have no spatial selection: a map of scores for each class at each
scale. An object is a maximum over positions and scales; the scale gives its size. In
training, the target is 1 where an object is, at the scale of its size. Prints precision
and recall at sizes of the training, at others, and on a large image.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from scipy.ndimage import maximum_filter
from scipy.special import expit

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import SHAPES, Scenes, Shape, random_scenes
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock, ScaleChannels
from keras_gdrn.models import with_input_shape

CANVAS = 64  # pixels
SIGMA0 = (1.0, 1.4, 2.0, 2.8)
SIZE = 10  # of objects at σ_0 = 1, in pixels
TRAINING_SIZES, TEST_SIZES = (14, 20), (10, 14, 20, 28)
THRESHOLD = 0.3  # of the probability, which is low with the focal loss
NEIGHBORHOOD = (3, 9, 9, 2 * len(SHAPES) - 1)  # scales, pixels, pixels, all classes


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", type=positive(int), default=600, help="in training")
    parser.add_argument("--tests", type=positive(int), default=60, help="of each size")
    parser.add_argument("--epochs", type=positive(int), default=2)
    parser.add_argument("--large", type=positive(int), default=1024, metavar="PIXELS")
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    model = detector()
    train = random_scenes(options.scenes, TRAINING_SIZES, seed=1)
    model.fit(train.images, targets(train), 8, options.epochs, verbose=2)
    print("size  precision  recall")
    side = options.large
    tests = {size: random_scenes(options.tests, [size], seed=2) for size in TEST_SIZES}
    tests["all"] = random_scenes(1, TEST_SIZES, seed=3, most=side // 8, canvas=side)
    for size, test in tests.items():
        network, start = with_input_shape(model, test.images.shape[1:]), time.time()
        scores = network.predict(test.images, batch_size=8, verbose=0)
        seconds = time.time() - start
        precision, recall = precision_and_recall(
            [*map(found_objects, scores)], test.objects
        )
        note = "" if size in TRAINING_SIZES else "  (not in training)"
        note = f"  ({side}×{side} in {seconds:.0f} s)" if size == "all" else note
        print(f"{size:>4}  {precision:9.3f}  {recall:6.3f}{note}")


def detector(widths=(8, 12, 12), ratio=1.5) -> keras.Model:
    """`(batch, scale, y, x, class)` scores: a map for each class, at each scale."""
    x = image = keras.Input((CANVAS, CANVAS, 1))
    x = GaussDerConv(widths[0], sigma=1.0, activation="relu")(x)
    for block, width in enumerate(widths[1:], start=1):
        x = GaussDerResidualBlock(width, sigma=ratio**block, zero_order=True)(x)
    rare = keras.initializers.Constant(-2.0)  # most pixels are of no class
    head = GaussDerConv(
        len(SHAPES), ratio ** len(widths), zero_order=True, bias_initializer=rare
    )
    channel = keras.Model(image, head(x))
    image = keras.Input((CANVAS, CANVAS, 1))
    model = keras.Model(image, ScaleChannels(channel, SIGMA0)(image))
    loss = keras.losses.BinaryFocalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(0.01), loss)
    # Otherwise TensorFlow traces the first step twice.
    model.optimizer.build(model.trainable_variables)
    return model


def targets(scenes: Scenes) -> np.ndarray:
    """1 at the center of each object, at the scale of its size; falls off around it."""
    maps = np.zeros(
        (len(scenes.images), len(SIGMA0), CANVAS, CANVAS, len(SHAPES)), "float32"
    )
    rows, columns = np.ogrid[:CANVAS, :CANVAS]
    for found, scene in zip(maps, scenes.objects, strict=True):
        for shape in scene:
            scale = int(np.argmin(np.abs(np.log(shape.size / SIZE / np.array(SIGMA0)))))
            squares = (rows - shape.row) ** 2 + (columns - shape.column) ** 2
            blob = np.exp(-squares / (2 * (shape.size / 8) ** 2))
            found[scale, ..., shape.kind] += blob
    return maps


def found_objects(scores: np.ndarray) -> list[Shape]:
    """The maxima of `(scale, y, x, class)` scores above the threshold."""
    best = scores == maximum_filter(scores, NEIGHBORHOOD)
    best &= expit(scores) > THRESHOLD
    return [
        Shape(int(kind), float(row), float(column), SIZE * SIGMA0[scale])
        for scale, row, column, kind in np.argwhere(best)
    ]


def precision_and_recall(found, true) -> tuple[float, float]:
    """Correct are class, size (within √2) and position (within 1/4 of the size)."""
    right = sum(
        any(is_same(one, other) for one in answers)
        for answers, scene in zip(found, true, strict=True)
        for other in scene
    )
    answers, objects = sum(map(len, found)), sum(map(len, true))
    return right / max(1, answers), right / max(1, objects)


def is_same(one: Shape, other: Shape) -> bool:
    distance = np.hypot(one.row - other.row, one.column - other.column)
    ratio = max(one.size, other.size) / min(one.size, other.size)
    return one.kind == other.kind and distance < other.size / 4 and ratio < 1.42


if __name__ == "__main__":
    main()
