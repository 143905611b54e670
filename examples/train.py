"""Trains a scale-invariant network at one size and tests it at others.

    python examples/train.py --dataset mnist --out runs/mnist
    python examples/train.py --dataset cifar10 --data-dir data --jit --out runs/cifar10

Data are those of `keras_gdrn.data.rescaled`; the network and the training are by
default those of the paper (two stages, Appendix A.4: first one scale channel at
σ_0 = 1, then all of them), for MNIST those of Fashion-MNIST. Where options are given
they count instead. `--pretrain-epochs 0` trains all scale channels from the beginning.

The folder `--out` gets the settings, logs and checkpoints, at the end the accuracies
(results.md, results.json), pictures and model.keras. A run that was interrupted is
resumed after its last whole epoch by the same command.
"""

import argparse
import dataclasses
import sys
from collections.abc import Sequence

from common import (  # before Keras: it keeps TensorFlow quiet
    VERBOSE,
    compile_classifier,
    sample_images,
    test_sets,
    training_data,
    with_progress,
    write_results,
)

# isort: split
import keras
from run_folder import (
    callbacks,
    claim,
    drop_backups,
    seconds_of_training,
)
from train_settings import DEFAULTS, FLIPPED, Settings, parse, settings_of

from keras_gdrn.data import DATASETS
from keras_gdrn.evaluation import scale_generalisation, scale_selection_histogram
from keras_gdrn.models import (
    gauss_der_resnet,
    with_input_shape,
    with_sigma0,
)


def main() -> None:
    options = parse(__doc__)
    settings = settings_of(options)
    try:
        claim(options.out, dataclasses.asdict(settings))
    except FileExistsError as error:
        sys.exit(f"error: {error}")
    if (options.out / "results.json").exists():
        print((options.out / "results.md").read_text(encoding="utf-8"))
        print(f"This run is complete; its results are in {options.out}")
        return
    if settings.mixed_precision:
        keras.config.set_dtype_policy(f"mixed_{settings.mixed_precision}")
    keras.utils.set_random_seed(settings.seed)
    run(settings, options)


def run(settings: Settings, options: argparse.Namespace) -> None:
    tests = test_sets(
        settings.dataset,
        settings.factors,
        batch_size=settings.batch_size,
        limit=settings.test_limit,
        data_dir=options.data_dir,
    )
    networks = {}
    if settings.pretrain_epochs:
        print("One scale channel")
        single = network(settings, [1.0])
        train(single, "pretrain", settings, options)
        networks["one scale channel"] = scale_generalisation(
            at_test_size(single, settings), with_progress(tests)
        )
        model = with_sigma0(single, settings.sigma0)
    else:
        model = network(settings, settings.sigma0)
    name = f"{len(settings.sigma0)} scale channels"
    print(name)
    train(model, "train", settings, options)
    model.save(options.out / "model.keras")
    model = at_test_size(model, settings)
    networks[name] = scale_generalisation(model, with_progress(tests))
    print("Which scale channels decide")
    histogram = scale_selection_histogram(model, with_progress(tests))
    record = {
        "settings": dataclasses.asdict(settings),
        "seconds": seconds_of_training(options.out),
        "parameters": model.count_params(),
    }
    write_results(
        options.out,
        networks,
        histogram,
        sample_images(settings.dataset, settings.factors, data_dir=options.data_dir),
        record,
    )
    drop_backups(options.out)


def network(settings: Settings, sigma0: Sequence[float]) -> keras.Model:
    info, preset = DATASETS[settings.dataset], DEFAULTS[settings.dataset][0]
    return gauss_der_resnet(
        (settings.canvas, settings.canvas, info.image_shape[-1]),
        info.classes,
        settings.widths,
        settings.ratio,
        sigma0,
        settings.pooling,
        settings.scale_dropout,
        spatial_selection=preset.spatial_selection,
        zero_order=preset.zero_order,
        boundary=settings.boundary,
    )


def train(
    model: keras.Model, stage: str, settings: Settings, options: argparse.Namespace
) -> None:
    """Trains by the settings of a stage, on from where it was interrupted."""
    prefix = "pretrain_" if stage == "pretrain" else ""
    chosen = dataclasses.asdict(settings)
    epochs, batch_size, learning_rate = (
        chosen[prefix + name] for name in ("epochs", "batch_size", "learning_rate")
    )
    data = training_data(
        settings.dataset,
        settings.train_split,
        batch_size=batch_size,
        seed=settings.seed,
        flip=settings.dataset in FLIPPED,
        canvas=settings.canvas,
        limit=settings.limit,
        data_dir=options.data_dir,
    )
    compile_classifier(
        model,
        steps=epochs * int(data.cardinality()),
        learning_rate=learning_rate,
        weight_decay=settings.weight_decay,
        jit_compile=True if options.jit else "auto",
    )
    model.fit(
        data,
        epochs=epochs,
        validation_data=validation_data(settings, options),
        callbacks=callbacks(options.out, stage),
        shuffle=False,  # the pipeline has done it
        verbose=VERBOSE,
    )


def validation_data(settings: Settings, options: argparse.Namespace):
    if settings.train_split != "train" or not DATASETS[settings.dataset].validation:
        return None
    return training_data(
        settings.dataset,
        "validation",
        batch_size=settings.batch_size,
        seed=settings.seed,
        canvas=settings.canvas,
        limit=settings.test_limit,
        data_dir=options.data_dir,
    )


def at_test_size(model: keras.Model, settings: Settings) -> keras.Model:
    """The model for the canvas of the test sets, which may be larger."""
    canvas = DATASETS[settings.dataset].test_canvas
    shape = (canvas, canvas, model.input_shape[-1])
    return model if model.input_shape[1:] == shape else with_input_shape(model, shape)


if __name__ == "__main__":
    main()
