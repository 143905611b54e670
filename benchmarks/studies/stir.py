"""Objects of any size at any position: one scenario of the public benchmark STIR.

    python benchmarks/studies/stir.py emoji 1                 # scenario 1, seed 0
    python benchmarks/studies/stir.py mnist 3 --seed 2 --data-dir ~/tensorflow_datasets
    python benchmarks/studies/stir.py emoji 1 --network cnn   # a peer
    python benchmarks/studies/stir.py --collect               # tables and pictures

A network with the maximum over all positions is trained on the sizes of the scenario
(1: 17-32, 2: 33-48, 3: 49-64, 4: all), and tested once, at the end, at all 48 sizes of
the test split. Training uses those of six scales that suit its sizes: two, or in
scenario 4 all (on MNIST after those of scenario 1). Objects twice as large get scales
twice as coarse. The test uses all six, for all sizes. The black around small objects is
cropped before training, to save time.

Writes `<data>-<scenario>[-<peer>]-seed<seed>.json` and a picture into `--out`, and the
network and its card for `from_preset`. After an interruption, the same command resumes.
`data.stir_published` has the accuracies of eleven networks, means of 25 to 50 runs each
(T. R. Altstidl et al., arXiv 2211.10288).
"""

import argparse
import dataclasses
import json
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # fast convolutions on any CPU

import keras
import numpy as np
from common import lit, origin, save_preset
from stir_networks import (
    OURS,
    PEERS,
    SCALES,
    SIDE,
    Training,
    gauss_der,
    resized,
    training,
)
from stir_report import picture, table

from keras_gdrn.commands import errors_in_one_line, positive, save_figure, write_text
from keras_gdrn.data import STIR_SCENARIOS, STIR_SIZES, stir_arrays
from keras_gdrn.evaluation import shift_accuracies
from keras_gdrn.models import (
    Card,
    Preprocess,
    count_parameters,
    with_input_shape,
    with_preprocess,
    with_sigma0,
)
from keras_gdrn.training import train_in_stages

_EMOJI = """
    tired surprise smile-wink smile-beam sad-tear sad-cry meh-rolling-eyes meh-blank
    laugh-wink laugh-squint laugh-beam laugh kiss-wink-heart kiss-beam kiss grin-wink
    grin-tongue-wink grin-tongue-squint grin-tongue grin-tears grin-stars
    grin-squint-tears grin-squint grin-hearts grin-beam-sweat grin-beam grin-alt grin
    grimace frown-open flushed dizzy angry smile meh frown
"""
CLASSES = {"emoji": _EMOJI.split(), "mnist": list("0123456789")}
SHIFTS = (0, 4, 8, 12)  # pixels along both axes, of objects of 40


def load(options, split: str, sizes: tuple[int, ...], side: int = SIDE) -> tuple:
    """Images `(size, N, side, side, 1)` and labels `(size, N)`."""
    source = {"data_dir": options.data_dir, "download": options.download}
    source |= {"side": side, "seed": options.seed}
    arrays = stir_arrays(options.data, split, sizes, **source)
    by_size = [np.stack(np.split(array, len(sizes))) for array in arrays]
    return tuple(array[:, : options.limit] for array in by_size)


def accuracies(
    model: keras.Model, images: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """The accuracy at each size."""
    images = images.reshape(-1, *images.shape[2:])
    answers = model.predict(images, batch_size=24, verbose=0).argmax(-1)
    return np.mean(answers.reshape(labels.shape) == labels, axis=1)


def run(options) -> dict:
    """Trains, and tests at all sizes; returns the record for the table."""
    scenario, data = int(options.scenario), options.data
    model, stages, histories = trained(options)
    validated = stages[-1].sizes[::4]  # all would take minutes
    validation = accuracies(model, *load(options, "validation", validated))
    begin = time.perf_counter()
    test = accuracies(model, *load(options, "test", STIR_SIZES))
    if options.network == OURS:
        publish(model, options, stages[-1].sigma0, test)
    return {
        "data": data,
        "scenario": scenario,
        "network": options.network,
        "seed": options.seed,
        "epochs": [stage.recipe.epochs for stage in stages],
        "parameters": count_parameters(model),
        "trained sigma0": [stage.sigma0 for stage in stages],
        "tested sigma0": SCALES if options.network == OURS else None,
        "minutes of training": sum(sum(of["seconds"]) for of in histories) / 60,
        "minutes of the test": (time.perf_counter() - begin) / 60,
        **origin(),
        "training accuracy": histories[-1]["accuracy"][-1],
        "validated sizes": validated,
        "validation accuracy": float(validation.mean()),
        "accuracies": test.tolist(),
    }


def trained(options) -> tuple[keras.Model, list[Training], list[dict]]:
    """The network for the test, the stages of its training, and their histories."""
    keras.utils.set_random_seed(options.seed)
    what, histories = (options.data, int(options.scenario)), []
    if options.network == OURS:
        build, stages = gauss_der, training(*what)
    else:
        peer = PEERS[options.network]
        build, stages = peer.build, peer.training(*what)
    if options.epochs:
        stages = [with_epochs(stage, options.epochs) for stage in stages]
    model = train_in_stages(
        build(len(CLASSES[options.data])),
        stages,
        lambda stage: images_of(stage, options),
        out=options.out / run_name(options),
        seed=options.seed,
        verbose=2,
        after_stage=lambda *done: histories.append(done[-1].history),
    )
    if options.network == OURS:
        model = with_sigma0(with_input_shape(model, (SIDE, SIDE, 1)), SCALES)
    return model, stages, histories


def with_epochs(stage: Training, epochs: int) -> Training:
    recipe = dataclasses.replace(stage.recipe, epochs=epochs)
    return dataclasses.replace(stage, recipe=recipe)


def images_of(stage: Training, options) -> tuple[np.ndarray, np.ndarray]:
    """The training images and labels of a stage."""
    side = stage.input_shape[0] if stage.input_shape else SIDE
    images, labels = load(options, "train", stage.sizes, side)
    images, labels = images.reshape(-1, *images.shape[2:]), labels.ravel()
    if not stage.copies:
        return images, labels
    copies = resized(images, stage.copies, options.seed)
    return copies, np.tile(labels, stage.copies)


def run_name(options) -> str:
    network = "" if options.network == OURS else f"-{options.network}"
    return f"{options.data}-{options.scenario}{network}-seed{options.seed}"


def publish(model: keras.Model, options, sigma0, test: np.ndarray) -> None:
    """Saves the network, trained last at `sigma0`, for `from_preset`, with its card."""
    sizes = STIR_SCENARIOS[int(options.scenario)]
    by_size = zip(STIR_SIZES, test, strict=True)
    (images,), (labels,) = load(options, "test", (40,))
    around = [(0, 0), *[(max(SHIFTS), max(SHIFTS))] * 2, (0, 0)]
    shifted = shift_accuracies(model, np.pad(centered(images), around), labels, SHIFTS)
    card = Card(
        data=f"STIR, {options.data}, objects anywhere on 64×64 pixels: trained at "
        f"{sizes[0]} to {sizes[-1]} pixels, tested at 17 to 64; factor 1 is 64 pixels",
        license="apache-2.0",
        command=f"python benchmarks/studies/stir.py {options.data} {options.scenario} "
        f"--seed {options.seed}",
        accuracy={
            f"{n / 64:g}": float(of) for n, of in by_size if n % 8 == 0 or n in (17, 20)
        },
        test_images=len(labels),
        object_sizes=(17.0, 64.0),
        shift_accuracy={str(by): share for by, share in shifted.items()},
        shift_images=len(labels),
        limits="Anything but these white symbols on black, and other sizes.",
        **origin(),
    )
    # The scales of training times this size are the sizes of training.
    size = np.mean(sizes) / np.mean(sigma0)
    preprocess = Preprocess(CLASSES[options.data], object_size=size, extension="zero")
    folder = options.out / run_name(options) / options.data
    save_preset(with_preprocess(model, preprocess), folder, card)


def centered(images: np.ndarray) -> np.ndarray:
    """The images with their objects in the center."""
    center = images.shape[1] // 2
    return np.stack(
        [
            np.roll(image, [center - middle(part) for part in lit(image)], (0, 1))
            for image in images
        ]
    )


def middle(part: slice) -> int:
    return (part.start + part.stop - 1) // 2


def write(results: list[dict], out: Path, name: str) -> None:
    ours = [result for result in results if result["network"] == OURS]
    if ours:
        save_figure(picture(ours), out / f"{name}.png")
    print(table(results))


@errors_in_one_line()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("data", nargs="?", choices=CLASSES, default="emoji")
    add("scenario", nargs="?", choices="1234", default="1")
    add("--network", choices=[OURS, *PEERS], default=OURS)
    add("--seed", type=int, default=0)
    add("--epochs", type=positive(int))
    add("--limit", type=positive(int), help="images of each size")
    add("--data-dir", help="of TensorFlow Datasets, or packed files")
    add("--download", action="store_true", help="download MNIST if needed")
    add("--out", type=Path, default=Path("runs/stir"))
    add("--collect", action="store_true", help="only show the runs in --out")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.collect:
        result = run(options)
        name = run_name(options)
        text = json.dumps(result, indent=1)
        write_text(options.out / f"{name}.json", text + "\n")
        return write([result], options.out, name)
    files = sorted(options.out.glob("*-seed*.json"))
    results = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    results = [{"network": OURS, **result} for result in results]
    for data in CLASSES:
        if runs := [result for result in results if result["data"] == data]:
            write(runs, options.out, data)


if __name__ == "__main__":
    main()
