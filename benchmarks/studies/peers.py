"""What others' scale-invariant networks do with the same digits and the same time.

    python benchmarks/studies/peers.py               # all, six minutes of one core
    python benchmarks/studies/peers.py --only sesn --seed 1
    python benchmarks/studies/peers.py --dataset mnist --download

Each is trained on 1000 images of scikit-learn's digits at size factor 1 (20×20 pixels
on a canvas of 40×40), in two stages: at one scale, then at all, and is tested on 797
others at nine size factors; or on 2000 images of MNIST (28×28, of which a digit has
20×20), tested on 1000 on a canvas of 56×56. All have some 9000 parameters and the
optimizer, schedule and loss of `Recipe`; epochs are such that the training takes about
as long. Prints a table, with seconds of processor time, and writes it with a picture to
runs/peers-<dataset>:

- `gauss_der`: the package's `digits`, six scale channels;
- `foveated` and `foveated_dense`: foveated scale channels (Jansson & Lindeberg) of a
  plain CNN, in steps of 2^(1/2) and of 2^(1/4), from 1/(2√2) to 2√2;
- `sesn`: a scale-equivariant steerable network (Sosnovik et al.) of five scales;
- `sesn_scores`: the same, with the maximum of the scores, not features, over scales.
"""

import argparse
import dataclasses
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from peer_networks import foveated_network, sesn

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import SIZE_FACTORS, rescaled_arrays
from keras_gdrn.evaluation import ScaleGeneralization, scale_generalization
from keras_gdrn.models import SIX_SCALES, architecture
from keras_gdrn.training import Recipe, Stage, train_in_stages
from keras_gdrn.tuning import parameters
from keras_gdrn.visualization import (
    markdown_table,
    plot_scale_generalization,
    size_label,
)

CANVAS, CLASSES = 40, 10
BATCH, REPEATS = 50, 5  # of images whose inference is timed
HALF_OCTAVES = tuple(2 ** (k / 2) for k in range(-3, 4))
QUARTER_OCTAVES = tuple(2 ** (k / 4) for k in range(-6, 7))
# Kernels of a finer scale cannot be sampled, those of a coarser one take too long.
SESN_SCALES = tuple(2 ** (k / 2) for k in range(-2, 3))


@dataclasses.dataclass(frozen=True)
class Data:
    """The side of the test images, and how many there are (by default all)."""

    test_canvas: int
    training_images: int | None = None
    test_images: int | None = None


DATASETS = {"digits": Data(CANVAS), "mnist": Data(56, 2000, 1000)}


@dataclasses.dataclass(frozen=True)
class Network:
    """A network at all its scales, for images of a side, and how it is trained."""

    title: str
    build: Callable[[int], keras.Model]
    scales: tuple[float, ...]
    first: Recipe
    second: Recipe

    def stages(self, epochs: int | None) -> list[Stage]:
        """Of so many epochs each, if they are given."""
        stages = [
            Stage("one scale", self.first, (1.0,)),
            Stage("all scales", self.second, self.scales),
        ]
        if epochs is None:
            return stages
        return [
            dataclasses.replace(s, recipe=dataclasses.replace(s.recipe, epochs=epochs))
            for s in stages
        ]


def foveated(title: str, scales: tuple[float, ...], epochs: int) -> Network:
    def build(side: int) -> keras.Model:
        shape, widths = (side, side, 1), (8, 12, 16, 24)
        return foveated_network(shape, CLASSES, widths, size=28, scales=scales)

    second = Recipe(epochs, 32, learning_rate=0.005)
    return Network(title, build, scales, Recipe(20, 32), second)


def steerable(title: str, **options) -> Network:
    def build(side: int) -> keras.Model:
        options_of_all = {"widths": (8, 16, 40), "sigma": 1.2, "scales": SESN_SCALES}
        return sesn((side, side, 1), CLASSES, **options_of_all, **options)

    second = Recipe(4, 32, learning_rate=0.005)
    return Network(title, build, SESN_SCALES, Recipe(20, 32), second)


NETWORKS = {
    "gauss_der": Network(
        "keras_gdrn, 6 scales",
        lambda side: architecture("digits", input_shape=(side, side, 1)),
        SIX_SCALES,
        Recipe(8, 32),
        Recipe(1, 32, learning_rate=0.005),
    ),
    "foveated": foveated("foveated, 7 scales", HALF_OCTAVES, epochs=20),
    "foveated_dense": foveated("foveated, 13 scales", QUARTER_OCTAVES, epochs=10),
    "sesn": steerable("SESN, 5 scales"),
    "sesn_scores": steerable("SESN, scores pooled", pool_scores=True),
}


@dataclasses.dataclass(frozen=True)
class Result:
    """What the table says of a network; seconds of processor time, which do not
    depend on what else runs, of the training and of the inference of one image."""

    curve: ScaleGeneralization
    parameters: int
    training: float
    inference: float


def evaluate(network: Network, options) -> Result:
    data = DATASETS[options.dataset]
    source = {"data_dir": options.data_dir, "download": options.download}
    load = partial(rescaled_arrays, options.dataset, **source)
    keras.utils.set_random_seed(options.seed)
    model = network.build(CANVAS)
    limit = options.limit or data.training_images
    images = load("train", canvas=CANVAS, limit=limit)
    begin = time.process_time()
    trained = train_in_stages(
        model, network.stages(options.epochs), images, seed=options.seed, verbose=2
    )
    training = time.process_time() - begin
    model = network.build(data.test_canvas)
    model.set_weights(trained.get_weights())
    limit = options.limit or data.test_images
    tests = {
        factor: load("test", factor, canvas=data.test_canvas, limit=limit)
        for factor in SIZE_FACTORS
    }
    curve = scale_generalization(model, tests)
    inference = seconds_per_image(model, tests[1.0][0])
    return Result(curve, parameters(model), training, inference)


def seconds_per_image(model: keras.Model, images) -> float:
    batch = images[:BATCH]
    model.predict_on_batch(batch)
    begin = time.process_time()
    for _ in range(REPEATS):
        model.predict_on_batch(batch)
    return (time.process_time() - begin) / (REPEATS * len(batch))


def table(results: dict[str, Result]) -> str:
    sizes = [size_label(factor) for factor in SIZE_FACTORS]
    rows = [["network", *sizes, "weights", "training", "per image"]]
    for title, result in results.items():
        rows.append(
            [
                title,
                *(f"{100 * accuracy:.1f}" for accuracy in result.curve.accuracies),
                str(result.parameters),
                f"{result.training:.0f} s",
                f"{1000 * result.inference:.1f} ms",
            ]
        )
    return markdown_table(rows)


def write(results: dict[str, Result], out: Path) -> None:
    (out / "results.md").write_text(table(results) + "\n", encoding="utf-8")
    curves = {title: result.curve for title, result in results.items()}
    plot_scale_generalization(curves).savefig(out / "scale_generalization.png")


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--dataset", choices=DATASETS, default="digits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=positive(int), help="of each of two stages")
    parser.add_argument("--limit", type=positive(int), help="images of each data set")
    parser.add_argument("--data-dir", help="directory of TensorFlow Datasets")
    parser.add_argument("--download", action="store_true", help="MNIST, if need be")
    parser.add_argument("--out", type=Path, help="folder of the table and picture")
    options = parser.parse_args()
    options.out = options.out or Path("runs") / f"peers-{options.dataset}"
    return options


@errors_in_one_line()
def main() -> None:
    options = parsed_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"{options.dataset}, seed {options.seed}")
    results = {}
    for name in options.only:
        network = NETWORKS[name]
        print(f"\n{network.title}")
        results[network.title] = evaluate(network, options)
        write(results, options.out)
    print(f"\nAccuracy at each size factor (training: 1)\n\n{table(results)}\n")
    print(f"Table and picture are in {options.out}")


if __name__ == "__main__":
    main()
