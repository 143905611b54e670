"""Trained at one size, tested at nine: digits, in about two minutes on two cores.

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
from collections.abc import Callable, Sequence
from pathlib import Path

from common import (  # before Keras: it keeps TensorFlow quiet
    VERBOSE,
    evaluate,
    sample_images,
    test_sets,
    write_results,
)

# isort: split
import keras
import tensorflow as tf
from networks import plain_resnet

from keras_gdrn.commands import errors_in_one_line
from keras_gdrn.data import SIZE_FACTORS, rescaled
from keras_gdrn.models import SIX_SCALES, gauss_der_resnet
from keras_gdrn.training import (
    Recipe,
    Stage,
    claim_folder,
    lock_folder,
    train_in_stages,
)

INPUT_SHAPE, CLASSES = (40, 40, 1), 10


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that decides the result."""

    seed: int = 0
    widths: tuple[int, ...] = (8, 12, 12, 16, 16)
    ratio: float = 1.25
    sigma0: tuple[float, ...] = SIX_SCALES
    scale_dropout: float = 0.2
    cnn_recipe: Recipe = Recipe(20, 32)
    channel_recipe: Recipe = Recipe(8, 32)
    network_recipe: Recipe = Recipe(1, 32, learning_rate=0.005)
    factors: tuple[float, ...] = SIZE_FACTORS
    training_images: int | None = None
    test_images: int | None = None


# For a test that all of it runs, in seconds; the accuracies mean nothing.
QUICK = Settings(
    widths=(4, 4),
    sigma0=(0.7, 1.4),
    cnn_recipe=Recipe(1, 32),
    channel_recipe=Recipe(1, 32),
    factors=(0.5, 1.0),
    training_images=64,
    test_images=40,
)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description="Trained at one size, tested at nine.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    settings = QUICK if options.quick else Settings()
    settings = dataclasses.replace(settings, seed=options.seed)
    with lock_folder(options.out):
        claim_folder(options.out, dataclasses.asdict(settings))
        run(settings, options.out)


def run(settings: Settings, out: Path) -> None:
    start = time.perf_counter()
    tests = test_sets(
        "digits", settings.factors, batch_size=100, limit=settings.test_images
    )
    networks, histograms = {}, {}

    def test(stage: Stage, model: keras.Model, _) -> None:
        networks[stage.name], histograms[stage.name] = evaluate(model, tests)

    keras.utils.set_random_seed(settings.seed)
    cnn = plain_resnet(INPUT_SHAPE, CLASSES, settings.widths)
    train(cnn, [Stage("plain CNN", settings.cnn_recipe)], settings, test)
    keras.utils.set_random_seed(settings.seed)
    network = gauss_der_resnet(
        INPUT_SHAPE,
        CLASSES,
        settings.widths,
        settings.ratio,
        settings.sigma0,
        scale_dropout=settings.scale_dropout,
    )
    last = f"{len(settings.sigma0)} scale channels"
    stages = [
        Stage("one scale channel", settings.channel_recipe, (1.0,)),
        Stage(last, settings.network_recipe, settings.sigma0),
    ]
    train(network, stages, settings, test)
    record = {
        "seed": settings.seed,
        "seconds": {"in all": time.perf_counter() - start},
    }
    images = sample_images("digits", settings.factors)
    write_results(out, networks, histograms[last], images, record)


def train(
    model: keras.Model,
    stages: Sequence[Stage],
    settings: Settings,
    test: Callable[..., None],
) -> None:
    """Trains at size factor 1, and tests after each stage."""

    def data(stage: Stage) -> tf.data.Dataset:
        return rescaled(
            "digits",
            "train",
            batch_size=stage.recipe.batch_size,
            shuffle=True,
            seed=settings.seed,
            limit=settings.training_images,
        )

    train_in_stages(
        model, stages, data, seed=settings.seed, after_stage=test, verbose=VERBOSE
    )


if __name__ == "__main__":
    main()
