"""Trains a network on a folder of images, and tests it at other sizes.

    python examples/own_data.py photos
    python examples/own_data.py photos --start-from runs/other/model.keras

`photos` has a subfolder of JPEG, PNG, BMP or GIF files for each class. A fifth of the
images is held out for the test. Each image is cropped to a square, which has `--side`
pixels in training (size factor 1) and half to twice as many in the test. One scale
channel is trained first, then the same at six initial scales. `--start-from` takes over
a trained scale channel, all but its last layer.

To the folder `--out` go model.keras, network.json (which predict.py reads), the table
and the pictures. Killed? The same command goes on.
"""

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common  # before Keras: it keeps TensorFlow quiet

# isort: split
import keras
import tensorflow as tf
from image_files import Images, check_names, fingerprint, read_folder
from predict import KNOWN, load

from keras_gdrn.commands import errors_in_one_line, positive
from keras_gdrn.data import SIZE_FACTORS, imresize
from keras_gdrn.layers import (
    GaussDerConv,
    ScaleChannels,
    ScalePooling,
    SpatialSelection,
)
from keras_gdrn.models import (
    SIX_SCALES,
    head_initializers,
    scale_channel,
    with_input_shape,
)
from keras_gdrn.training import (
    Recipe,
    Stage,
    claim_folder,
    lock_folder,
    train_in_stages,
)

LARGEST = 2048  # pixels of a side of the images that are tested


@errors_in_one_line()
def main() -> None:
    run(parse())


def run(options: argparse.Namespace) -> None:
    start = time.perf_counter()
    check_names(path for path in vars(options).values() if isinstance(path, Path))
    before = load(options.start_from) if options.start_from else None
    channels = before.input_shape[-1] if before else 1 if options.gray else 3
    side = options.side
    if max(options.factors) * side > LARGEST:
        raise ValueError(
            f"--factors times --side must be at most {LARGEST} pixels. "
            f"Received: {max(options.factors):g} times {side}"
        )
    train, test, classes = read_folder(options.folder, 2 * side, channels, options.seed)
    decided = {"classes": classes, "images": fingerprint(train, test)}
    keras.utils.set_random_seed(options.seed)
    shape, count = (side, side, channels), len(classes)
    if before:
        channel = transferred(before, count, shape)
    else:
        channel = fresh(options, shape, count)
    model = at_six_scales(channel)
    with lock_folder(options.out):
        # Once all is there: what was mistyped has no say in the folder.
        claim_folder(options.out, {**settings(options), **decided})
        model = trained(model, train, options)
        save(model, classes, options)
        record = {
            "classes": classes,
            "images": {"training": len(train.labels), "test": len(test.labels)},
            "parameters": common.parameters(model),
            "seconds": {"training": time.perf_counter() - start},
        }
        write_test(model, test, record, options)


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """All that decides the result, for JSON."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(options).items()
        if name != "out"
    }


def fresh(options: argparse.Namespace, shape: tuple, classes: int) -> keras.Model:
    """A scale channel for objects that need not be in the middle."""
    widths, ratio = options.widths, options.ratio
    return scale_channel(shape, classes, widths, ratio, spatial_selection="max")


def transferred(model: keras.Model, classes: int, shape: tuple) -> keras.Model:
    """The scale channel of a trained network, with a new last layer."""
    channel = last(model, ScaleChannels).network
    head, selection = (last(channel, kind) for kind in (GaussDerConv, SpatialSelection))
    features = keras.Model(channel.input, head.input)
    features = with_input_shape(features, shape)
    begin = head_initializers(zero_order=head.zero_order)
    config = {**head.get_config(), "filters": classes, **begin}
    new_head = GaussDerConv.from_config(config)
    select = SpatialSelection.from_config(selection.get_config())
    return keras.Model(features.input, select(new_head(features.output)))


def last(model: keras.Model, kind: type) -> keras.layers.Layer:
    """The last layer of a kind, whatever it is called."""
    found = [layer for layer in getattr(model, "layers", []) if isinstance(layer, kind)]
    if not found:
        raise ValueError(
            "The network to start from must apply `ScaleChannels` to a channel that "
            "ends with a `GaussDerConv` and a `SpatialSelection`. "
            f"Received: {model.name!r} without a `{kind.__name__}`"
        )
    return found[-1]


def at_six_scales(channel: keras.Model) -> keras.Model:
    """The scale-invariant network of one scale channel."""
    image = keras.Input(channel.input_shape[1:], name="image")
    scores = ScaleChannels(channel, SIX_SCALES, name="scale_channels")(image)
    pooling = ScalePooling("max", dropout=0.2, name="scale_pooling", dtype="float32")
    return keras.Model(image, pooling(scores), name="own_data")


def trained(
    model: keras.Model, train: Images, options: argparse.Namespace
) -> keras.Model:
    """The network, trained at one scale first and then at six."""
    first = Recipe(options.epochs, options.batch_size)
    second = dataclasses.replace(
        first, epochs=max(1, options.epochs // 4), learning_rate=0.005
    )
    stages = [
        Stage("one_channel", first, (1.0,)),
        Stage("six_channels", second, SIX_SCALES),
    ]
    return train_in_stages(
        model,
        stages,
        batches(train, 1.0, options.batch_size, options.seed),
        out=options.out,
        seed=options.seed,
        verbose=common.VERBOSE,
    )


def save(
    model: keras.Model, classes: Sequence[str], options: argparse.Namespace
) -> None:
    """The network, and what predict.py has to know of it."""
    common.save_network(model, options.out / "model.keras")
    known = {"classes": classes, "side": options.side}
    text = json.dumps(known, indent=2, ensure_ascii=False) + "\n"
    common.write_whole(options.out / KNOWN, text)


def write_test(
    model: keras.Model, test: Images, record: dict, options: argparse.Namespace
) -> None:
    """Tests the network at each size, and writes the table and the pictures."""
    print(f"Test on the {len(test.labels)} images that were held out")
    largest = math.ceil(max(options.factors) * options.side)
    size = common.test_batch(model, (largest, largest))
    tests = {factor: batches(test, factor, size) for factor in options.factors}
    of_any_size = with_input_shape(model, (None, None, test.pixels.shape[-1]))
    result, histogram = common.evaluate(of_any_size, tests)
    samples = {f: next(data.as_numpy_iterator())[0][:4] for f, data in tests.items()}
    common.write_results(options.out, {model.name: result}, histogram, samples, record)


def batches(
    images: Images, factor: float, batch_size: int, seed: int | None = None
) -> tf.data.Dataset:
    """Batches (images, labels) at a size factor, in [0, 1]; shuffled by a seed."""

    def resize(pixels: tf.Tensor, labels: tf.Tensor) -> tuple:
        resized = imresize(pixels, factor / 2)
        return tf.clip_by_value(resized / 255, 0.0, 1.0), labels

    with tf.device("CPU"):  # a GPU would be given a copy of all images
        data = tf.data.Dataset.from_tensor_slices(tuple(images))
    if seed is not None:
        data = data.shuffle(len(images.labels), seed)
    data = data.batch(batch_size).map(resize, num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folder", type=Path, help="has a subfolder of images for each class")
    add(
        "--side",
        type=positive(int),
        default=48,
        help="pixels of an image at size factor 1",
    )
    add("--gray", action="store_true", help="one channel instead of three")
    add("--widths", type=positive(int), nargs="+", default=[16, 16, 24, 24, 32])
    add("--ratio", type=positive(float), default=1.25, help="of successive scales")
    add("--start-from", type=Path, help="a .keras file, of which a channel is taken")
    add(
        "--epochs",
        type=positive(int),
        default=20,
        help="of one channel; of six a quarter",
    )
    add("--batch-size", type=positive(int), default=32)
    add("--factors", type=positive(float), nargs="+", default=SIZE_FACTORS)
    add("--seed", type=int, default=0)
    add("--out", type=Path, default=Path("runs/own_data"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
