"""Trained at one size, tested at nine: digits, in less than five minutes on two cores.

Three networks are trained on 1000 images of scikit-learn's digits at size factor 1
(20x20 pixels on a canvas of 40x40), and tested on 797 others at size factors 1/2 to 2:

- a plain residual CNN of the same widths;
- one scale channel: a Gaussian derivative residual network at σ_0 = 1;
- six scale channels: the same network, with the same weights, at six initial scales,
  trained for one epoch more (two-stage training, Appendix A.4).

    python examples/demo.py

writes the table, the settings and three pictures to runs/demo.
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from common import (  # before Keras: it keeps TensorFlow quiet
    VERBOSE,
    compile_classifier,
    sample_images,
    test_sets,
    training_data,
    with_progress,
    write_results,
)

# isort: split
import keras
from keras import layers

from keras_gdrn.data import SIZE_FACTORS
from keras_gdrn.evaluation import scale_generalisation, scale_selection_histogram
from keras_gdrn.models import gauss_der_resnet, with_sigma0

INPUT_SHAPE, CLASSES = (40, 40, 1), 10


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that decides the result; the same recipe for each of the three networks."""

    seed: int = 0
    widths: tuple[int, ...] = (8, 12, 12, 16, 16)
    ratio: float = 1.25
    sigma0: tuple[float, ...] = tuple(2 ** (i / 2) for i in range(-3, 3))
    scale_dropout: float = 0.2
    cnn_epochs: int = 20
    channel_epochs: int = 8
    network_epochs: int = 1
    batch_size: int = 32
    learning_rate: float = 0.01
    fine_tuning_rate: float = 0.005
    weight_decay: float = 0.025
    factors: tuple[float, ...] = SIZE_FACTORS
    training_images: int | None = None
    test_images: int | None = None
    histogram_images: int = 200


# For a test that all of it runs, in seconds; the accuracies mean nothing.
QUICK = Settings(
    widths=(4, 4),
    sigma0=(0.7, 1.4),
    cnn_epochs=1,
    channel_epochs=1,
    factors=(0.5, 1.0),
    training_images=64,
    test_images=40,
    histogram_images=20,
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Trained at one size, tested at nine.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    settings = QUICK if options.quick else Settings()
    options.out.mkdir(parents=True, exist_ok=True)
    run(dataclasses.replace(settings, seed=options.seed), options.out)


def run(settings: Settings, out: Path) -> None:
    start = time.perf_counter()
    tests = digits_tests(settings, settings.test_images)
    networks = {}

    print("A plain CNN, trained at size factor 1")
    keras.utils.set_random_seed(settings.seed)
    cnn = plain_cnn(settings.widths)
    train(cnn, settings, settings.cnn_epochs, settings.learning_rate)
    networks["plain CNN"] = scale_generalisation(cnn, with_progress(tests))

    print("One scale channel, trained at size factor 1")
    keras.utils.set_random_seed(settings.seed)
    channel = gauss_der_resnet(
        INPUT_SHAPE,
        CLASSES,
        settings.widths,
        settings.ratio,
        sigma0=[1.0],
        scale_dropout=settings.scale_dropout,
    )
    train(channel, settings, settings.channel_epochs, settings.learning_rate)
    networks["one scale channel"] = scale_generalisation(channel, with_progress(tests))

    print(f"{len(settings.sigma0)} scale channels with its weights, at size factor 1")
    network = with_sigma0(channel, settings.sigma0)
    train(network, settings, settings.network_epochs, settings.fine_tuning_rate)
    name = f"{len(settings.sigma0)} scale channels"
    networks[name] = scale_generalisation(network, with_progress(tests))

    print("Which scale channels decide")
    some = digits_tests(settings, settings.histogram_images)
    histogram = scale_selection_histogram(network, with_progress(some))
    record = {
        "settings": dataclasses.asdict(settings),
        "seconds": {"in all": time.perf_counter() - start},
    }
    write_results(
        out, networks, histogram, sample_images("digits", settings.factors), record
    )


def plain_cnn(widths: Sequence[int]) -> keras.Model:
    """Residual network of 3x3 convolutions; every other block halves the resolution."""
    image = keras.Input(INPUT_SHAPE)
    x = conv_bn(image, widths[0])
    for block, filters in enumerate(widths[1:]):
        strides = 2 if block % 2 == 0 else 1
        y = conv_bn(layers.ReLU()(x), filters, strides=strides)
        y = conv_bn(layers.ReLU()(y), filters)
        if strides > 1 or x.shape[-1] != filters:
            x = conv_bn(x, filters, size=1, strides=strides)
        x = layers.add([x, y])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(x))
    return keras.Model(image, layers.Dense(CLASSES)(x), name="plain_cnn")


def conv_bn(x, filters: int, size: int = 3, strides: int = 1):
    x = layers.Conv2D(
        filters, size, strides, padding="same", kernel_initializer="he_uniform"
    )(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def train(
    model: keras.Model, settings: Settings, epochs: int, learning_rate: float
) -> None:
    data = training_data(
        "digits",
        "train",
        batch_size=settings.batch_size,
        seed=settings.seed,
        limit=settings.training_images,
    )
    compile_classifier(
        model,
        steps=epochs * int(data.cardinality()),
        learning_rate=learning_rate,
        weight_decay=settings.weight_decay,
    )
    # The pipeline has shuffled the data.
    model.fit(data, epochs=epochs, shuffle=False, verbose=VERBOSE)


def digits_tests(settings: Settings, limit: int | None) -> dict:
    return test_sets("digits", settings.factors, batch_size=100, limit=limit)


if __name__ == "__main__":
    main()
