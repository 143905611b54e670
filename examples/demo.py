"""Trained on small emoji, tested on large ones: the public benchmark STIR.

    python examples/demo.py

A network of 14 000 parameters learns 36 emoji of 17 to 32 pixels, at the two scales
that suit them. With the same weights at six scales, it is tested on emoji of up to 64
pixels, at any position on images of 64x64. For comparison, there are the accuracies of
eleven other networks that the authors published (arXiv 2211.10288).

Writes a table and three pictures to runs/demo. All sizes, scenarios and data sets:
benchmarks/studies/stir.py.
"""

import argparse
import os
import time
from pathlib import Path

# Otherwise TensorFlow prints several lines of errors on a machine without a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from matplotlib.figure import Figure

from keras_gdrn.commands import errors_in_one_line, save_figure, write_text
from keras_gdrn.data import (
    STIR_SCENARIOS,
    STIR_SIZES,
    stir,
    stir_arrays,
    stir_published,
)
from keras_gdrn.evaluation import scale_selection_histogram
from keras_gdrn.models import gauss_der_resnet, with_input_shape, with_sigma0
from keras_gdrn.training import Recipe, fit
from keras_gdrn.visualization import (
    markdown_table,
    plot_scale_selection_histogram,
    plot_sizes,
)

SIDE, CLASSES, WIDTHS = 36, 36, (8, 12, 16, 24)
SCALES = [2 ** (k / 2) for k in range(-2, 4)]
TRAINED, TESTED = STIR_SCENARIOS[1], (17, 20, 24, 28, 32, 40, 48, 56, 64)


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    parser.add_argument("--quick", action="store_true", help="only check that it runs")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    recipe = Recipe(epochs=1 if options.quick else 5, batch_size=16)
    sizes = TESTED[::4] if options.quick else TESTED

    keras.utils.set_random_seed(options.seed)
    network = gauss_der_resnet(
        (SIDE, SIDE, 1),
        CLASSES,
        WIDTHS,
        ratio=1.35,
        sigma0=SCALES[1:3],
        spatial_selection="max",
        head_initializer="he_uniform",
    )
    small = TRAINED[::8] if options.quick else TRAINED
    # The black around them is cropped, which saves time.
    images = stir_arrays("emoji", "train", small, side=SIDE, seed=options.seed)
    fit(network, recipe, images, seed=options.seed, verbose=2)
    # The same weights at all six scales, for larger images.
    network = with_sigma0(with_input_shape(network, (64, 64, 1)), SCALES)
    tests = {size: stir("emoji", "test", size, batch_size=18) for size in sizes}
    histogram = scale_selection_histogram(network, tests)

    others = stir_published("emoji", 1)
    at = [STIR_SIZES.index(size) for size in sizes]
    rows = [["accuracy in percent at", *map(str, sizes)]]
    results = {"six scale channels": 100 * histogram.accuracies}
    best = np.max(list(others.values()), axis=0)
    results["the best published, at each size"] = best[at]
    for name, accuracies in results.items():
        rows.append([name, *(f"{accuracy:.1f}" for accuracy in accuracies)])
    table = markdown_table(rows)
    print(f"\nTrained on {TRAINED[0]} to {TRAINED[-1]} pixels\n\n{table}\n")
    write_text(options.out / "results.md", f"{table}\n")

    selection = plot_scale_selection_histogram(histogram)
    selection.axes[0].set_xlabel("size of the objects in pixels")
    faces = {size: stir_arrays("emoji", "test", size)[0][::9] for size in sizes[::2]}
    for name, figure in {
        "accuracy": curves(others, sizes, results["six scale channels"]),
        "scale_selection": selection,
        "sizes": plot_sizes(faces),
    }.items():
        save_figure(figure, options.out / f"{name}.png")
    seconds = time.perf_counter() - start
    print(f"Table and pictures are in {options.out}, after {seconds:.0f} s")


def curves(others: dict, sizes: tuple[int, ...], accuracies: np.ndarray) -> Figure:
    """Accuracy against size, with the published networks in gray."""
    figure = Figure((6, 3.6), dpi=100, layout="constrained")
    plot = figure.subplots()
    plot.axvspan(TRAINED[0], TRAINED[-1], color="0.92", lw=0)
    gray = plot.plot(STIR_SIZES, np.transpose(list(others.values())), "0.6", lw=0.8)
    red = plot.plot(sizes, accuracies, "o-C3", ms=4)
    plot.set_xlabel("size of the objects in pixels (training: shaded)")
    plot.set_ylabel("accuracy [%]")
    plot.grid(alpha=0.3)
    labels = [f"{len(others)} published networks", "six scale channels"]
    figure.legend([gray[0], red[0]], labels, loc="outside lower center", ncols=2)
    return figure


if __name__ == "__main__":
    main()
