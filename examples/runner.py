"""Runs an experiment into a folder: stages, test, pictures, results."""

import dataclasses
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import (  # before Keras: it keeps TensorFlow quiet
    VERBOSE,
    evaluate,
    parameters,
    sample_images,
    test_sets,
    write_results,
)

# isort: split
import keras
from experiments import Experiment, Stage
from insight import write_insight
from networks import plain_resnet
from variants import variant

from keras_gdrn.data import DATASETS, rescaled
from keras_gdrn.evaluation import ScaleGeneralisation, ScaleSelectionHistogram
from keras_gdrn.models import gauss_der_resnet, with_input_shape, with_sigma0
from keras_gdrn.training import OutOfTime, TimeLimit, fit, on_devices
from keras_gdrn.training._processes import of_first


@dataclasses.dataclass(frozen=True)
class Options:
    """How an experiment is run; but for the seed, the result does not depend on it.

    Args:
        out: folder of the run.
        seed: of the weights, of shuffling, augmentation and dropout.
        data_dir: directory of TensorFlow Datasets.
        max_minutes: stop after an epoch in time; the same command goes on.
        start_from: folder of another run whose first stage is taken over.
        jit_compile, tensorboard: as for `keras_gdrn.training.fit`.
        devices: as for `keras_gdrn.training.on_devices`; one of them tests.
    """

    out: Path
    seed: int = 0
    data_dir: str | None = None
    max_minutes: float | None = None
    start_from: Path | None = None
    jit_compile: bool | str = "auto"
    tensorboard: bool = False
    devices: int | str = 1


def run(name: str, experiment: Experiment, options: Options) -> None:
    """Trains and tests, on from where it was interrupted; may raise `OutOfTime`."""
    begun, model = time.perf_counter(), None
    limit = TimeLimit(minutes=options.max_minutes)
    seconds, networks, histogram = {}, {}, None
    for stage in experiment.stages:
        channels = f"{len(stage.sigma0)} scale channel(s)"
        print(f"{name}: {stage.name}, {'plain' if experiment.plain else channels}")
        with on_devices(options.devices):
            model = network(experiment, stage, options.seed, model)
            seconds[stage.name] = train(model, experiment, stage, options, limit)
        if options.devices != 1:  # one of them tests
            weights = model.get_weights()
            model = network(experiment, stage, options.seed, None)
            model.set_weights(weights)
        last = stage is experiment.stages[-1]
        if last and experiment.test_sigma0:
            model = with_sigma0(model, experiment.test_sigma0)
        print("Test")
        result, histogram = tested(model, experiment, options)
        networks[name if last else f"{name}, {stage.name}"] = result
    model.save(options.out / "model.keras")
    record = {
        "name": name,
        "experiment": dataclasses.asdict(experiment),
        "seed": options.seed,
        "seconds": {**seconds, "in all": time.perf_counter() - begun},
        "parameters": parameters(model),
        "policy": keras.config.dtype_policy().name,
    }
    of_test = test_options(experiment, options)
    if not experiment.plain:
        write_insight(
            options.out, model, experiment.dataset, experiment.factors[-1], **of_test
        )
    images = sample_images(experiment.dataset, experiment.factors, **of_test)
    write_results(options.out, networks, histogram, images, record)


def network(
    experiment: Experiment, stage: Stage, seed: int, before: keras.Model | None
) -> keras.Model:
    """The network of a stage, with the weights of the stage before it."""
    keras.utils.set_random_seed(seed)
    arguments = {
        **dataclasses.asdict(experiment.network),
        "sigma0": stage.sigma0,
    }
    if experiment.plain:
        names = ("input_shape", "classes", "widths")
        return plain_resnet(*(arguments[name] for name in names))
    if len(stage.sigma0) == 1:  # over one channel, all are the identity
        arguments["scale_pooling"] = "max"
    model = gauss_der_resnet(**arguments)
    if before is not None:
        model.set_weights(before.get_weights())
    return model


def train(
    model: keras.Model,
    experiment: Experiment,
    stage: Stage,
    options: Options,
    limit: TimeLimit,
) -> float:
    """Trains by the recipe of a stage; returns the seconds that its epochs took."""
    folder = options.out / stage.name
    if options.start_from and stage is experiment.stages[0] and not folder.exists():
        shutil.copytree(options.start_from / stage.name, folder)
    if of_first(lambda: limit.is_reached(0)):
        raise OutOfTime
    data = rescaled(
        experiment.dataset,
        "train+validation",  # as in the paper, when all had been chosen
        canvas=experiment.network.input_shape[:2],
        batch_size=stage.recipe.batch_size,
        shuffle=True,
        seed=options.seed,
        limit=stage.limit,
        data_dir=options.data_dir,
    )
    history = fit(
        variant(model, experiment.variant if len(stage.sigma0) > 1 else None),
        stage.recipe,
        data,
        out=folder,
        seed=options.seed,
        max_minutes=limit,
        jit_compile=options.jit_compile,
        tensorboard=options.tensorboard,
        verbose=VERBOSE,
    )
    if len(history.epoch) < stage.recipe.epochs:
        raise OutOfTime
    return sum(history.history["seconds"])


def tested(
    model: keras.Model, experiment: Experiment, options: Options
) -> tuple[ScaleGeneralisation, ScaleSelectionHistogram | None]:
    """What the network does on the canvas of the test images."""
    arguments = test_options(experiment, options)
    model = with_input_shape(model, (*arguments["canvas"], model.input_shape[-1]))
    tests = test_sets(
        experiment.dataset, experiment.factors, batch_size=20, **arguments
    )
    return evaluate(model, tests)


def test_options(experiment: Experiment, options: Options) -> Mapping[str, Any]:
    side = experiment.test_canvas or DATASETS[experiment.dataset].test_canvas
    return {
        "canvas": (side, side),
        "limit": experiment.test_limit,
        "data_dir": options.data_dir,
    }
