"""Tests a saved network on the rescaled test sets of a data set.

    python examples/evaluate.py runs/search-digits-random/model.keras --dataset digits

prints its accuracy at each size factor, and writes the table and pictures to the folder
`--out`: scale_generalization.png, sizes.png and, of a network with scale channels,
scale_selection.png.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import common
from sources import add_source, source_of

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, SIZE_FACTORS
from keras_gdrn.models import with_input_shape
from keras_gdrn.training import claim_folder, lock_folder


@errors_in_one_line()
def main() -> None:
    options = parse()
    with lock_folder(options.out):
        evaluate(options)


def evaluate(options: argparse.Namespace) -> None:
    start = time.perf_counter()
    side = options.canvas or DATASETS[options.dataset].test_canvas
    source, canvas = source_of(options), (side, side)
    model = common.load_network(options.model)
    model = with_input_shape(model, (side, side, model.input_shape[-1]))
    tests = common.test_sets(
        options.dataset,
        options.factors,
        source,
        canvas=canvas,
        limit=options.limit,
        batch_size=common.test_batch(model, canvas),
    )
    images = common.sample_images(
        options.dataset, options.factors, source, canvas=canvas
    )
    # Once all is there: what was mistyped has no say in the folder.
    parts = [("test", factor, canvas) for factor in options.factors]
    images_of = source.collect(options.dataset, parts)
    claim_folder(options.out, settings_of(options, images_of))
    result, histogram = common.evaluate(model, tests)
    record = {
        "model": str(options.model),
        "parameters": common.parameters(model),
        "seconds": {"in all": time.perf_counter() - start},
    }
    common.write_results(options.out, {model.name: result}, histogram, images, record)


def settings_of(options: argparse.Namespace, images: Any) -> dict[str, Any]:
    """All that decides the result, for JSON."""
    settings = {**vars(options), "model": str(options.model)}
    for name in ("out", "data_dir", "download", "h5"):
        del settings[name]
    return {**settings, "images": images}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", type=Path, help="a .keras file")
    add("--dataset", choices=list(DATASETS), required=True)
    add(
        "--factors",
        type=positive(float),
        nargs="+",
        default=SIZE_FACTORS,
        help="size factors",
    )
    add("--limit", type=positive(int), help="test images of each size")
    add("--canvas", type=positive(int), help="side of the images in pixels")
    add_source(add)
    add("--out", type=Path, default=Path("runs/evaluate"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
