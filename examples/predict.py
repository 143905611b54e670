"""Asks a saved network about image files: class, confidence and selected scale.

    python examples/predict.py runs/own_data/model.keras cat.jpg dog.png

prints a line for each file, and draws the image as the network saw it, beside the
scores that its answer rests on, to the folder `--out`. Each image is resized so that
its shorter side has `--side` pixels, and cropped or extended to the network's own size.
Beside a network of own_data.py is a network.json that knows the side and the names of
the classes; for any other network they are options.
"""

import argparse
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import common  # before Keras: it keeps TensorFlow quiet

# isort: split
import keras
import matplotlib
import numpy as np
from image_files import MODES, printable, read_image
from matplotlib.figure import Figure

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import rescale
from keras_gdrn.evaluation import scale_shares
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import only_layer
from keras_gdrn.visualization import size_label

KNOWN = "network.json"
EXTENSIONS = ("zero", "mirror")
LARGEST = 65535  # pixels of a side, as in a JPEG file


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a network says about one image.

    Attributes:
        image: `(height, width, channel)` in [0, 1], as the network saw it.
        confidences: `(class,)`, the softmax of the scores; they sum to one.
        sigma0: `(scale,)` initial scales of the scale channels.
        scores: `(scale,)` scores of the most confident class before the pooling.
        shares: `(scale,)` share of each scale channel in that class's score.
    """

    image: np.ndarray
    confidences: np.ndarray
    sigma0: tuple[float, ...]
    scores: np.ndarray
    shares: np.ndarray

    @property
    def label(self) -> int:
        return int(np.argmax(self.confidences))

    @property
    def scale(self) -> float:
        """The initial scale of the channel with the largest share."""
        return self.sigma0[int(np.argmax(self.shares))]


@errors_in_one_line()
def main() -> None:
    predict(parse())


def predict(options: argparse.Namespace) -> None:
    model = load(options.model)
    known = what_is_known(options, model.output_shape[-1])
    side, extension, errors = known["side"], known["extension"], []
    if side is None and None in model.input_shape[1:3]:
        raise ValueError(
            "The network takes images of any size: say by --side how many pixels their "
            "shorter side shall have, as in training."
        )
    network = with_scores_of_scales(model)
    options.out.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(options.images, start=1):
        try:
            image = read_image(path, model.input_shape[-1])
        except ValueError as error:  # the other files go on
            errors.append(str(error))
            continue
        try:
            image = placed(image, model.input_shape[1:3], side, extension)
            given = answer(network, model, image)
            name = known["classes"][given.label]
            confidence = f"{100 * given.confidences.max():.1f} %"
            line = f"{name}, {confidence}, σ₀ = {size_label(given.scale)}"
            figure = drawn(given, known["classes"], printable(f"{path.name}: {line}"))
            figure.savefig(options.out / picture_name(number, path))
        except Exception as error:  # also of no memory, or of a full disk
            errors.append(f"{path}: {error}")
        else:
            print(printable(f"{path}: {line}"))
    print(printable(f"Pictures are in {options.out}"))
    if errors:
        raise ValueError("\n".join(errors))


def picture_name(number: int, image: Path) -> str:
    """In the 255 bytes that a name may have, and in UTF-8."""
    stem = image.stem.encode(errors="ignore")[:200].decode(errors="ignore")
    return f"{number}_{stem}.png"


def load(path: Path) -> keras.Model:
    """The model in a `.keras` file, that takes images."""
    if path.suffix != ".keras" or not path.is_file():
        raise ValueError(f"The network must be a .keras file. Received: {path}")
    model = common.load_network(path)
    shape = getattr(model, "input_shape", None)
    if not isinstance(shape, tuple) or len(shape) != 4 or shape[-1] not in MODES:
        raise ValueError(
            "The network must take images (batch, height, width, channel) with 1 or 3 "
            f"channels. Received: {path} with the input shape {shape}"
        )
    return model


def what_is_known(options: argparse.Namespace, classes: int) -> dict[str, Any]:
    """Names of the classes, side and extension: from the options or the file."""
    found = kept_beside(options.model.with_name(KNOWN))
    numbers = [f"class {number}" for number in range(classes)]
    known = {"classes": numbers, "side": None, "extension": "mirror", **found}
    given = {name: getattr(options, name) for name in known}
    known.update({name: value for name, value in given.items() if value is not None})
    known["classes"] = [printable(name) for name in known["classes"]]
    if len(known["classes"]) != classes:
        raise ValueError(
            f"There must be a name for each of the {classes} classes of the network. "
            f"Received: {len(known['classes'])} names, {known['classes']}"
        )
    return known


def kept_beside(file: Path) -> dict[str, Any]:
    """What own_data.py has written of a network, if it has."""
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    checks = {
        "classes": lambda x: isinstance(x, list) and {*map(type, x)} <= {str},
        "side": lambda x: type(x) is int and 0 < x <= LARGEST,
        "extension": lambda x: isinstance(x, str) and x in EXTENSIONS,
    }
    fits = isinstance(found, dict) and all(
        name in checks and checks[name](value) for name, value in found.items()
    )
    if not fits:
        raise ValueError(
            f"{file} must have nothing but the names of the `classes`, the `side` in "
            f"pixels, 1 to {LARGEST}, and the `extension`, {' or '.join(EXTENSIONS)}. "
            f"Received: {found}"
        )
    return found


def with_scores_of_scales(model: keras.Model) -> keras.Model:
    """A model that returns what is pooled, `(batch, scale, class)`, and the scores."""
    pooling = only_layer(model, ScalePooling)
    only_layer(model, ScaleChannels)
    return keras.Model(model.input, [pooling.input, model.output])


def placed(
    image: np.ndarray, canvas: Sequence[int | None], side: int | None, extension: Any
) -> np.ndarray:
    """The image resized and centered on the network's canvas, in [0, 1].

    Args:
        image: `(height, width, channel)`, values 0 to 255.
        canvas: Height and width that the network takes; `None` takes the image's.
        side: Pixels of the resized image's shorter side; `None` fills the canvas.
        extension: What lies around the image: "zero" or "mirror".
    """
    shorter = min(image.shape[:2])
    factor = (min(n for n in canvas if n) if side is None else side) / shorter
    sizes = (math.ceil(factor * n) for n in image.shape[:2])
    canvas = tuple(n or size for n, size in zip(canvas, sizes, strict=True))
    return np.clip(rescale(image, factor, canvas, extension) / 255, 0, 1)


def answer(network: keras.Model, model: keras.Model, image: np.ndarray) -> Answer:
    """What the network says about `image`, `(height, width, channel)` in [0, 1].

    Args:
        network: `with_scores_of_scales(model)`.
    """
    # Called, not `predict`ed: nothing is compiled, for each size of images anew.
    of_scales, scores = network(image[None], training=False)
    scores = keras.ops.convert_to_numpy(scores)[0]
    of_class = keras.ops.convert_to_numpy(of_scales)[0, :, np.argmax(scores)]
    pooling, channels = (
        only_layer(model, ScalePooling),
        only_layer(model, ScaleChannels),
    )
    return Answer(
        image,
        # Trained by the cross-entropy of the softmax, whatever pooled the scores.
        keras.ops.convert_to_numpy(keras.ops.softmax(scores)),
        tuple(channels.sigma0),
        of_class,
        scale_shares(of_class[None], pooling.mode)[0],
    )


@matplotlib.rc_context({"text.parse_math": False})  # a name may have a $
def drawn(given: Answer, classes: Sequence[str], title: str) -> Figure:
    """The image, the most confident classes, and the score at each scale."""
    figure = Figure(figsize=(7.2, 2.6), dpi=150, layout="constrained")
    figure.suptitle(title, fontsize=9)
    picture, answers, scales = figure.subplots(1, 3)
    picture.imshow(np.squeeze(given.image), cmap="gray", vmin=0, vmax=1)
    picture.set_axis_off()
    best = np.argsort(-given.confidences, kind="stable")[:5]
    bars(answers, {classes[n]: given.confidences[n] for n in best}, 0)
    answers.set(xlim=(0, 1), xlabel="confidence")
    labels = [f"σ₀ = {size_label(sigma)}" for sigma in given.sigma0]
    of_scales = dict(zip(labels, given.scores, strict=True))
    bars(scales, of_scales, int(np.argmax(given.shares)))
    scales.set_xlabel(f"score of {classes[given.label]}")
    return figure


def bars(axes: Any, values: Mapping[str, float], chosen: int) -> None:
    """Horizontal bars, the first on top, and the chosen one in another color."""
    colors = ["C1" if n == chosen else "C0" for n in range(len(values))]
    axes.barh(range(len(values)), list(values.values()), color=colors)
    axes.set_yticks(range(len(values)), list(values))
    axes.invert_yaxis()
    axes.tick_params(labelsize=7)
    axes.xaxis.label.set_size(8)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", type=Path, help="a .keras file")
    add("images", type=Path, nargs="+", help="image files")
    add("--classes", nargs="+", help="names of the classes")
    add("--side", type=positive(int), help="pixels of the shorter side of an image")
    add("--extension", choices=EXTENSIONS, help="what lies around an image")
    add("--out", type=Path, default=Path("runs/predict"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
