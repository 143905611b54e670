"""Writes a rescaled data set to HDF5 files, for any framework to read.

    python examples/make_rescaled.py --dataset cifar10 --out files

One file holds training and validation at size factor 1; the test set has one file for
each size factor. Files that are complete already are left as they are.
"""

import argparse
import os
from pathlib import Path

# Otherwise TensorFlow greets a machine without a GPU by several lines of errors.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import DATASETS, SIZE_FACTORS, write_h5


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--dataset", choices=list(DATASETS), required=True)
    add("--data-dir", help="directory of TensorFlow Datasets")
    add("--download", action="store_true", help="download the data, if need be")
    add(
        "--factors",
        type=positive(float),
        nargs="+",
        default=SIZE_FACTORS,
        help="test sizes",
    )
    add("--limit", type=positive(int), help="only so many images of each split")
    add("--out", type=Path, default=Path("rescaled"), help="folder of the files")
    options = parser.parse_args()
    names = ("limit", "data_dir", "download")
    common = {name: getattr(options, name) for name in names}
    info = DATASETS[options.dataset]
    training = ("train", "validation") if info.validation else ("train",)
    files = [(training, 1.0), *((("test",), factor) for factor in options.factors)]
    for number, (parts, factor) in enumerate(files, start=1):
        path = write_h5(options.out, options.dataset, parts, factor, **common)
        megabytes = path.stat().st_size / 1e6
        print(f"{number}/{len(files)} {path} ({megabytes:.0f} MB)", flush=True)


if __name__ == "__main__":
    main()
