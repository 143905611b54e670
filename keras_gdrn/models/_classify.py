"""Classification of images of any size and format."""

import itertools
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_gdrn._checks import check_positive, check_positive_integer
from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models._graph import also_returning_input_of, only_layer
from keras_gdrn.models._preprocess import Preprocess

BATCH = 32


class Prediction(NamedTuple):
    """The prediction of a network for one image.

    The `name` of the most probable class and its `probability`, the softmax of the
    scores; `sigma0`, the initial scale of the scale channel that decided; the `top`
    classes, each with its probability.
    """

    name: str
    probability: float
    sigma0: float
    top: list[tuple[str, float]]


def classify(
    model: keras.Model,
    images: Any,
    object_size: float | None = None,
    top: int = 3,
) -> list[Prediction]:
    """Classifies images of any size and format.

    Each image is resized so that the object has the training size, then cropped or
    extended around its center to the network's input shape. A network with
    `input_shape=(None, None, 3)` takes the whole image.

    Args:
        model: Network with a `Preprocess` that knows its `object_size`, such as those
            of `from_preset`.
        images: Path of an image file, its bytes, the file opened in binary mode,
            `PIL.Image.Image` or array of an image, with values of 0 to 255 or 0 to 1;
            or a sequence of these, of any sizes.
        object_size: Side of the object in the image, in pixels; by default the
            object fills the shorter side of the image. A factor of two more or
            less costs some networks a few points.
        top: Number of classes in each prediction.

    Returns:
        A `Prediction` for each image.

    Raises:
        ValueError: If an image cannot be read, or the model has no such
            `Preprocess`.

    Example:

    >>> classify(from_preset("cifar10"), ["cat.jpg", "ship.png"])[0].name
    'cat'
    """
    from keras_gdrn.data import read_image  # not needed by the networks themselves

    preprocess = only_layer(model, Preprocess)
    if preprocess.object_size is None:
        raise ValueError(
            "`model` must have a `Preprocess` with an `object_size`. "
            f"Received: model={model.name!r} with object_size=None"
        )
    if object_size is not None:
        check_positive("object_size", object_size)
    scales = only_layer(model, ScaleChannels).sigma0
    # Objects get the size that suits the scale channel in the middle.
    middle = sorted(scales)[len(scales) // 2]
    side, canvas = middle * preprocess.object_size, model.input_shape[1:3]
    fitted = []
    for image in _listed(images):
        pixels = read_image(image, model.input_shape[-1])
        factor = side / (object_size or min(pixels.shape[:2]))
        fitted.append(_fit_to_canvas(pixels, factor, canvas, preprocess.extension))
    network = also_returning_input_of(model, only_layer(model, ScalePooling))
    step = 1 if None in canvas else BATCH  # images of several sizes
    predictions = []
    for n in range(0, len(fitted), step):
        # Unlike `predict`, a call does not compile again for each size of images.
        outputs = network(np.stack(fitted[n : n + step]), training=False)
        each, scores = map(ops.convert_to_numpy, outputs)
        names = decode_predictions(scores, preprocess.class_names, top)
        predictions += map(_prediction, each, scores, names, itertools.repeat(scales))
    return predictions


def _prediction(of_scales, scores, names: list, scales: Sequence) -> Prediction:
    name, probability = names[0]
    decided = np.argmax(of_scales[:, np.argmax(scores)])
    return Prediction(name, probability, scales[int(decided)], names)


def decode_predictions(
    scores: Any, class_names: Sequence[str] | keras.Model, top: int = 5
) -> list[list[tuple[str, float]]]:
    """Names and probabilities of the most probable classes.

    Probabilities are the softmax of the scores, because the networks are trained with
    the cross-entropy of logits (`from_logits=True`).

    Args:
        scores: `(batch, class)`, as `model.predict` returns them.
        class_names: Names of the classes, or a model whose `Preprocess` has them.
        top: Number of classes for each image.

    Returns:
        For each image a list of `(name, probability)`, the most probable first.

    Raises:
        ValueError: If there is not a name for each class, or a score is NaN.

    Example:

    >>> decode_predictions([[0.0, 2.0]], ["cat", "dog"], top=1)
    [[('dog', 0.8807970285415649)]]
    """
    if isinstance(class_names, keras.Model):
        class_names = tuple(only_layer(class_names, Preprocess).class_names)
    scores = ops.convert_to_numpy(scores)
    count = check_positive_integer("top", top)
    if scores.ndim != 2 or len(class_names) not in (0, scores.shape[-1]):
        raise ValueError(
            "`scores` must be (batch, class), with a name for each class. "
            f"Received: scores of the shape {scores.shape}, class_names={class_names}"
        )
    names = list(class_names) or [f"class {n}" for n in range(scores.shape[-1])]
    unknown = np.flatnonzero(np.isnan(scores).any(axis=-1))
    if len(unknown):
        raise ValueError(
            "`scores` has NaN: images must have values of 0 to 255 or of 0 to 1. "
            f"Received: NaN for the images {unknown.tolist()}"
        )
    probabilities = ops.convert_to_numpy(ops.softmax(ops.cast(scores, "float32")))
    order = np.argsort(-probabilities, axis=-1, kind="stable")[:, :count]
    return [
        [(names[k], float(each[k])) for k in best]
        for each, best in zip(probabilities, order, strict=True)
    ]


def _listed(images: Any) -> list:
    one = isinstance(images, (str, bytes, bytearray, memoryview, os.PathLike))
    if one or hasattr(images, "getexif") or hasattr(images, "read"):
        return [images]
    kind = getattr(getattr(images, "dtype", None), "kind", None)
    if kind in ("O", "S", "U"):
        listed = images.ravel().tolist()
        return list(map(os.fsdecode, listed)) if kind == "S" else listed  # paths
    if getattr(images, "ndim", 4) <= 3:  # one array
        return [images]
    if not isinstance(images, Iterable):
        raise ValueError(
            "`images` must be paths of files, their bytes, files opened in binary "
            f"mode, Pillow images or arrays. Received: images={images!r}"
        )
    return list(images)


def _fit_to_canvas(pixels: np.ndarray, factor: float, canvas, extension) -> np.ndarray:
    """The resized image, cropped or extended to the network's known sizes."""
    from keras_gdrn.data import rescale

    sizes = (math.ceil(factor * n) for n in pixels.shape[:2])
    canvas = tuple(n or size for n, size in zip(canvas, sizes, strict=True))
    return np.clip(rescale(pixels, factor, canvas, extension) / 255, 0, 1)
