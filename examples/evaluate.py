"""Tests a trained network on the rescaled test sets of a data set.

    python examples/evaluate.py runs/search-digits-random/model.keras --dataset digits

prints its accuracy at each size factor, and writes the table and pictures to the folder
`--out`. The network is whatever `from_preset` takes: a name, a folder, a `.keras` file.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

from keras_gdrn.commands import errors_in_one_line, positive, save_figure, write_text
from keras_gdrn.data import DATASETS, SIZE_FACTORS, rescaled, rescaled_arrays
from keras_gdrn.evaluation import scale_selection_histogram
from keras_gdrn.models import from_preset, with_input_shape
from keras_gdrn.visualization import (
    markdown_table,
    plot_scale_generalization,
    plot_scale_selection_histogram,
    plot_sizes,
    size_label,
)


@errors_in_one_line()
def main() -> None:
    options = parse()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    side = options.canvas or DATASETS[options.dataset].test_canvas
    model = from_preset(options.model)
    model = with_input_shape(model, (side, side, model.input_shape[-1]))
    where = {"data_dir": options.data_dir, "download": options.download}
    data = {**where, "limit": options.limit, "canvas": side}
    tests = {
        factor: rescaled(options.dataset, "test", factor, batch_size=32, **data)
        for factor in options.factors
    }
    histogram = scale_selection_histogram(model, tests)
    header = ["network", *map(size_label, histogram.factors)]
    row = [model.name, *(f"{accuracy:.3f}" for accuracy in histogram.accuracies)]
    table = markdown_table([header, row])
    print(f"\nAccuracy at each size factor (training: 1)\n\n{table}\n")
    write_text(out / "results.md", f"{table}\n")
    few = {**data, "limit": 4}
    images = {
        factor: rescaled_arrays(options.dataset, "test", factor, **few)[0]
        for factor in options.factors
    }
    curve = plot_scale_generalization({model.name: histogram})
    save_figure(curve, out / "scale_generalization.png")
    save_figure(plot_scale_selection_histogram(histogram), out / "scale_selection.png")
    save_figure(plot_sizes(images), out / "sizes.png")
    print(f"Table and pictures are in {out}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, count = parser.add_argument, positive(int)
    add("model", help="name, folder, .keras file or hf://user/name")
    add("--dataset", choices=list(DATASETS), required=True)
    add("--factors", type=positive(float), nargs="+", default=SIZE_FACTORS)
    add("--limit", type=count, help="test images of each size")
    add("--canvas", type=count, help="side of the images in pixels")
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--download", action="store_true", help="download the data if needed")
    add("--out", type=Path, default=Path("runs/evaluate"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
