"""Classifies image files: class, probability and selected scale.

    python examples/predict.py cifar10 cat.jpg dog.png
    python examples/predict.py runs/own_data/model.keras cat.jpg dog.png

The network is one that comes with the package, a folder of `save_to_preset`, a `.keras`
file or hf://user/name. Networks of own_data.py store the names of their classes and the
size of their images; for any other these are options.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.models import Preprocess, classify, from_preset, with_preprocess
from keras_gdrn.visualization import size_label


@errors_in_one_line()
def main() -> None:
    options = parse()
    model, errors = from_preset(options.model), []
    if options.side or options.classes or options.extension:
        own = [layer for layer in model.layers if isinstance(layer, Preprocess)]
        own = own[0] if own else Preprocess()
        names = options.classes or own.class_names
        side = options.side or own.object_size
        known = Preprocess(names, side, options.extension or own.extension)
        model = with_preprocess(model, known)
    for path in options.images:
        try:
            (answer,) = classify(model, [path], options.object_size)
        except ValueError as error:  # go on with the other files
            errors.append(str(error))
            continue
        top = ", ".join(f"{name} {100 * share:.1f} %" for name, share in answer.top)
        print(printable(f"{path}: {top}, σ₀ = {size_label(answer.sigma0)}"))
    if errors:
        raise ValueError(printable("\n".join(errors)))


def printable(text: str) -> str:
    """Text with escapes for what is not UTF-8, as in some file names."""
    return text.encode("utf-8", "backslashreplace").decode()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", help="name, folder, .keras file or hf://user/name")
    add("images", nargs="+", help="image files")
    add("--object-size", type=positive(float), help="in pixels; by default the image's")
    add("--side", type=positive(int), help="pixels of an image in training")
    add("--classes", nargs="+", help="names of the classes")
    text = "of images; by default the network's own, or mirror"
    add("--extension", choices=("zero", "mirror"), help=text)
    return parser.parse_args()


if __name__ == "__main__":
    main()
