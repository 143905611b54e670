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
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from peer_networks import SESN_SCALES, foveated_network, sesn

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import SIZE_FACTORS, rescaled_arrays
from keras_gdrn.evaluation import scale_generalization
from keras_gdrn.models import SIX_SCALES, architecture
from keras_gdrn.training import Recipe, Stage, train_in_stages
from keras_gdrn.tuning import parameters
from keras_gdrn.visualization import (
    markdown_table,
    plot_scale_generalization,
    size_label,
)

CANVAS, BATCH, REPEATS = 40, 50, 5  # of inference, the last two
# Canvas of the test, and numbers of training and test images (by default all).
DATASETS = {"digits": (CANVAS, None, None), "mnist": (56, 2000, 1000)}


def gauss_der(side: int) -> keras.Model:
    return architecture("digits", input_shape=(side, side, 1))


class Network(NamedTuple):
    """A network for images of a side; epochs are those at one scale and at all."""

    title: str
    build: Callable[[int], keras.Model]
    scales: tuple[float, ...]
    epochs: tuple[int, int]


def foveated(scales: tuple[float, ...], epochs: tuple[int, int]) -> Network:
    build = partial(foveated_network, scales=scales)
    return Network(f"foveated, {len(scales)} scales", build, scales, epochs)


NETWORKS = {
    "gauss_der": Network("keras_gdrn, 6 scales", gauss_der, SIX_SCALES, (8, 1)),
    "foveated": foveated(tuple(2 ** (k / 2) for k in range(-3, 4)), (20, 20)),
    "foveated_dense": foveated(tuple(2 ** (k / 4) for k in range(-6, 7)), (20, 10)),
    "sesn": Network("SESN, 5 scales", sesn, SESN_SCALES, (20, 4)),
    "sesn_scores": Network(
        "SESN, scores pooled", partial(sesn, pool_scores=True), SESN_SCALES, (20, 4)
    ),
}


def evaluate(network: Network, options) -> tuple:
    """The curve, and the row, with seconds of the processor: whatever else runs."""
    canvas, *limits = DATASETS[options.dataset]
    training_limit, test_limit = (options.limit or limit for limit in limits)
    source = {"data_dir": options.data_dir, "download": options.download}
    load = partial(rescaled_arrays, options.dataset, **source)
    keras.utils.set_random_seed(options.seed)
    first, second = ([options.epochs] * 2) if options.epochs else network.epochs
    stages = [
        Stage("one scale", Recipe(first, 32), (1.0,)),
        Stage("all scales", Recipe(second, 32, learning_rate=0.005), network.scales),
    ]
    images = load("train", canvas=CANVAS, limit=training_limit)
    model, how = network.build(CANVAS), {"seed": options.seed, "verbose": 2}
    begin = time.process_time()
    trained = train_in_stages(model, stages, images, **how)
    training = time.process_time() - begin
    model = network.build(canvas)
    model.set_weights(trained.get_weights())
    where = {"canvas": canvas, "limit": test_limit}
    tests = {factor: load("test", factor, **where) for factor in SIZE_FACTORS}
    curve = scale_generalization(model, tests)
    batch = tests[1.0][0][:BATCH]
    model.predict_on_batch(batch)
    begin = time.process_time()
    for _ in range(REPEATS):
        model.predict_on_batch(batch)
    inference = (time.process_time() - begin) / (REPEATS * len(batch))
    accuracies = (f"{100 * accuracy:.1f}" for accuracy in curve.accuracies)
    cost = str(parameters(model)), f"{training:.0f} s", f"{1000 * inference:.1f} ms"
    return curve, [network.title, *accuracies, *cost]


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, count = parser.add_argument, positive(int)
    add("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    add("--dataset", choices=DATASETS, default="digits")
    add("--seed", type=int, default=0)
    add("--epochs", type=count, help="of each of two stages")
    add("--limit", type=count, help="images of each data set")
    add("--data-dir", help="directory of TensorFlow Datasets")
    add("--download", action="store_true", help="MNIST, if need be")
    add("--out", type=Path, help="folder of the table and picture")
    options = parser.parse_args()
    out = options.out or Path("runs") / f"peers-{options.dataset}"
    out.mkdir(parents=True, exist_ok=True)
    print(f"{options.dataset}, seed {options.seed}")
    sizes = [size_label(factor) for factor in SIZE_FACTORS]
    rows, curves = [["network", *sizes, "weights", "training", "per image"]], {}
    for name in options.only:
        title = NETWORKS[name].title
        print(f"\n{title}")
        curves[title], row = evaluate(NETWORKS[name], options)
        rows.append(row)
        text = markdown_table(rows)
        (out / "results.md").write_text(f"{text}\n", encoding="utf-8")
        plot_scale_generalization(curves).savefig(out / "scale_generalization.png")
    print(f"\nAccuracy at each size factor (training: 1)\n\n{text}\n")
    print(f"Table and picture are in {out}")


if __name__ == "__main__":
    main()
