"""Trained at one size, tested at nine: digits, as in the paper, in a few minutes.

Three networks are trained on 1000 images of scikit-learn's digits at size factor 1
(20x20 pixels on a canvas of 40x40), and tested on 797 others at size factors 1/2 to 2:

- a plain residual CNN of the same widths;
- one scale channel: a Gaussian derivative residual network at σ_0 = 1;
- six scale channels: the same network, with the same weights, at six initial scales,
  trained for four epochs more (two-stage training, Appendix A.4).

    python examples/digits.py

writes the table and three pictures to runs/digits.
"""

import argparse
import os
import time
from pathlib import Path

# Otherwise TensorFlow prints several lines of errors on a machine without a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
from keras import layers

from keras_gdrn.commands import errors_in_one_line, save_figure, write_text
from keras_gdrn.data import SIZE_FACTORS, rescaled, rescaled_arrays
from keras_gdrn.evaluation import scale_generalization, scale_selection_histogram
from keras_gdrn.models import SIX_SCALES, gauss_der_resnet, with_sigma0
from keras_gdrn.training import Recipe, fit
from keras_gdrn.visualization import (
    markdown_table,
    plot_scale_generalization,
    plot_scale_selection_histogram,
    plot_sizes,
    size_label,
)

SHAPE, CLASSES, WIDTHS = (40, 40, 1), 10, (8, 12, 12, 16, 16)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description="Trained at one size, tested at nine.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--density", type=float, default=1.0, help="samples per σ")
    parser.add_argument("--out", type=Path, default=Path("runs/digits"))
    parser.add_argument("--quick", action="store_true", help="only check that it runs")
    options = parser.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    limit, sigma0 = (40, (0.7, 1.4)) if options.quick else (None, SIX_SCALES)
    tests = {
        factor: rescaled("digits", "test", factor, batch_size=100, limit=limit)
        for factor in (SIZE_FACTORS[::4] if options.quick else SIZE_FACTORS)
    }

    def train(model: keras.Model, epochs: int, learning_rate: float = 0.01) -> None:
        recipe = Recipe(1 if options.quick else epochs, 32, learning_rate)
        images = rescaled("digits", "train", limit=limit)
        fit(model, recipe, images, seed=options.seed, verbose=2)

    keras.utils.set_random_seed(options.seed)
    cnn = plain_resnet()
    train(cnn, epochs=20)
    results = {"plain CNN": scale_generalization(cnn, tests)}

    keras.utils.set_random_seed(options.seed)
    network = gauss_der_resnet(
        SHAPE, CLASSES, WIDTHS, 1.25, sigma0, density=options.density
    )
    channel = with_sigma0(network, [1.0])  # the same weights
    train(channel, epochs=8)
    results["one scale channel"] = scale_generalization(channel, tests)
    train(network, epochs=4, learning_rate=0.005)
    histogram = scale_selection_histogram(network, tests)
    results[f"{len(sigma0)} scale channels"] = histogram

    rows = [["network", *map(size_label, tests)]]
    for name, result in results.items():
        rows.append([name, *(f"{accuracy:.3f}" for accuracy in result.accuracies)])
    table = markdown_table(rows)
    print(f"\nAccuracy at each size factor (training: 1)\n\n{table}\n")
    write_text(out / "results.md", f"{table}\n")
    images = {f: rescaled_arrays("digits", "test", f, limit=4)[0] for f in tests}
    save_figure(plot_scale_generalization(results), out / "scale_generalization.png")
    save_figure(plot_scale_selection_histogram(histogram), out / "scale_selection.png")
    save_figure(plot_sizes(images), out / "sizes.png")
    seconds = time.perf_counter() - start
    print(f"Table and pictures are in {out}, after {seconds:.0f} s")


def plain_resnet() -> keras.Model:
    """3x3 convolutions: every other block halves the resolution."""

    def conv_bn(x, filters: int, size: int = 3, strides: int = 1):
        x = layers.Conv2D(
            filters, size, strides, padding="same", kernel_initializer="he_uniform"
        )(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    image = keras.Input(SHAPE)
    x = conv_bn(image, WIDTHS[0])
    for block, filters in enumerate(WIDTHS[1:]):
        strides = 2 if block % 2 == 0 else 1
        y = conv_bn(layers.ReLU()(x), filters, strides=strides)
        y = conv_bn(layers.ReLU()(y), filters)
        if strides > 1 or x.shape[-1] != filters:
            # Instead of a strided 1x1 convolution, which is the same: its gradient
            # corrupts memory in TensorFlow 2.21 on processors with AVX-512.
            x = conv_bn(layers.MaxPooling2D(1, strides)(x), filters, size=1)
        x = layers.add([x, y])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(x))
    return keras.Model(image, layers.Dense(CLASSES)(x), name="plain_resnet")


if __name__ == "__main__":
    main()
