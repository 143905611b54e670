"""Fine-tuning: a network that knows ten digits learns three shapes from few images.

    python examples/fine_tune.py

The training images have one size, about that of the digits; the test has sizes from
half to twice as large. For comparison, the same network is trained from scratch on the
same images.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import SHAPES, centered_shapes
from keras_gdrn.evaluation import scale_generalization
from keras_gdrn.models import from_preset
from keras_gdrn.training import Recipe, fit
from keras_gdrn.visualization import markdown_table

SIZE, FACTORS = 18, (0.5, 0.71, 1, 1.41, 2)  # pixels, size factors


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=positive(int), default=60, help="for training")
    parser.add_argument("--tests", type=positive(int), default=100, help="of each size")
    parser.add_argument("--epochs", type=positive(int), default=6)
    options = parser.parse_args()
    data = shapes(options.images, SIZE, seed=1)
    tests = {f: shapes(options.tests, f * SIZE, seed=2) for f in FACTORS}
    rows = [["trained on", *map(str, FACTORS)]]
    for name, trained in {"digits, then shapes": True, "shapes": False}.items():
        model = tuned(trained, data, options.epochs)
        accuracies = scale_generalization(model, tests).accuracies
        rows.append([name, *(f"{accuracy:.2f}" for accuracy in accuracies)])
    print(markdown_table(rows))


def tuned(trained: bool, data: tuple, epochs: int) -> keras.Model:
    """The network with a new last layer, after training all its layers."""
    keras.utils.set_random_seed(0)
    model = from_preset("digits", trained, SHAPES, input_shape=(64, 64, 1))
    fit(model, Recipe(epochs, 10, learning_rate=0.003), data, verbose=2)
    return model


def shapes(count: int, size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images with one shape near the center, and its class."""
    scenes = centered_shapes(count, size, seed)
    return scenes.images, np.array([shape.kind for (shape,) in scenes.objects])


if __name__ == "__main__":
    main()
