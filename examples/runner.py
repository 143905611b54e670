"""Runs an experiment into a folder: stages, test, pictures, results."""

import dataclasses
import itertools
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from common import (  # before Keras: it keeps TensorFlow quiet
    TFDS,
    VERBOSE,
    evaluate,
    parameters,
    sample_images,
    save_network,
    test_batch,
    test_sets,
    write_results,
)

# isort: split
import keras
import numpy as np
import tensorflow as tf
from experiments import Experiment, Stage
from insight import write_insight
from networks import plain_resnet
from sources import Source
from variants import variant

from keras_gdrn.data import DATASETS
from keras_gdrn.evaluation import ScaleGeneralization, ScaleSelectionHistogram
from keras_gdrn.models import gauss_der_resnet, with_input_shape, with_sigma0
from keras_gdrn.training import on_devices, train_in_stages

# Test images among which those are looked for whose activation maps are drawn.
SEARCHED = 100


@dataclasses.dataclass(frozen=True)
class Options:
    """How an experiment is run; but for the seed, the result does not depend on it.

    Args:
        out: Folder of the run.
        seed: Seed of the weights, of shuffling, augmentation and dropout.
        source: Source of the images.
        max_minutes: Stop after an epoch in time; the same command goes on.
        start_from: Folder of another run whose first stage is taken over, and those of
            one scale channel that follow.
        jit_compile, tensorboard: As for `keras_gdrn.training.fit`.
        devices: As for `keras_gdrn.training.on_devices`; one of them tests.
    """

    out: Path
    seed: int = 0
    source: Source = TFDS
    max_minutes: float | None = None
    start_from: Path | None = None
    jit_compile: bool | str = "auto"
    tensorboard: bool = False
    devices: int | str = 1


def run(name: str, experiment: Experiment, options: Options) -> None:
    """Trains and tests, on from where it was interrupted; may raise `OutOfTime`."""
    start = time.perf_counter()
    trained = train(experiment, options)
    networks, histogram, model = {}, None, None
    for stage in experiment.stages:
        last = stage is experiment.stages[-1]
        # One device tests, whichever have trained.
        model = network(experiment, stage.sigma0, options.seed)
        model.set_weights(trained[stage.name].weights)
        if last and experiment.test_sigma0:
            model = with_sigma0(model, experiment.test_sigma0)
        print(f"Test of {stage.name}")
        result, histogram = tested(model, experiment, options)
        networks[name if last else f"{name}, {stage.name}"] = result
    seconds = {stage: found.seconds for stage, found in trained.items()}
    seconds["in all"] = time.perf_counter() - start
    write(name, experiment, options, model, networks, histogram, seconds)


@dataclasses.dataclass(frozen=True)
class Trained:
    """The weights after a stage, and the seconds that its epochs took."""

    weights: list[np.ndarray]
    seconds: float


def train(experiment: Experiment, options: Options) -> dict[str, Trained]:
    """What each stage has trained, by its name."""
    stages = experiment.stages
    if experiment.plain:  # without scale channels
        stages = [dataclasses.replace(stage, sigma0=None) for stage in stages]
    if options.start_from:
        take_over(stages, options.start_from, options.out)
    trained = {}

    def after_stage(stage: Stage, model: keras.Model, history: Any) -> None:
        seconds = sum(history.history["seconds"])
        trained[stage.name] = Trained(model.get_weights(), seconds)

    with on_devices(options.devices):
        model = network(experiment, experiment.stages[-1].sigma0, options.seed)
        train_in_stages(
            variant(model, experiment.variant),
            stages,
            partial(training_data, experiment, options),
            out=options.out,
            seed=options.seed,
            max_minutes=options.max_minutes,
            after_stage=after_stage,
            jit_compile=options.jit_compile,
            tensorboard=options.tensorboard,
            verbose=VERBOSE,
        )
    return trained


def take_over(stages: Sequence[Stage], other: Path, out: Path) -> None:
    """Copies the first stage of another run, and what follows of one scale channel.

    Poolings have no say in one scale channel; `fit` tells, if anything else differs.
    """
    alone = itertools.takewhile(lambda stage: len(stage.sigma0 or ()) == 1, stages[1:])
    for stage in (stages[0], *alone):
        if not (out / stage.name).exists():
            shutil.copytree(other / stage.name, out / stage.name)


def training_data(
    experiment: Experiment, options: Options, stage: Stage
) -> tf.data.Dataset:
    return options.source.batches(
        experiment.dataset,
        "train+validation",  # as in the paper, when all had been chosen
        canvas=experiment.network.input_shape[:2],
        batch_size=stage.recipe.batch_size,
        shuffle=True,
        seed=options.seed,
        limit=stage.limit,
    )


def network(
    experiment: Experiment, sigma0: tuple[float, ...], seed: int
) -> keras.Model:
    """The network with scale channels at `sigma0`, as it begins."""
    keras.utils.set_random_seed(seed)
    arguments = {
        **dataclasses.asdict(experiment.network),
        "sigma0": sigma0,
    }
    if experiment.plain:
        names = ("input_shape", "classes", "widths")
        return plain_resnet(*(arguments[name] for name in names))
    return gauss_der_resnet(**arguments)


def tested(
    model: keras.Model, experiment: Experiment, options: Options
) -> tuple[ScaleGeneralization, ScaleSelectionHistogram | None]:
    """What the network does on the canvas of the test images."""
    canvas = test_canvas(experiment)
    model = with_input_shape(model, (*canvas, model.input_shape[-1]))
    tests = test_sets(
        experiment.dataset,
        experiment.factors,
        options.source,
        canvas=canvas,
        limit=experiment.test_limit,
        batch_size=test_batch(model, canvas),
    )
    return evaluate(model, tests)


def maps(experiment: Experiment) -> str:
    """How much of the maps was evaluated, in words for the results."""
    network = experiment.network
    if experiment.plain:
        return "whole"
    windows = network.spatial_selection == "center" and network.receptive_field
    return (
        f"windows ({network.receptive_field})" if windows else "whole, as the paper's"
    )


def parts(experiment: Experiment) -> list[tuple[str, float, tuple[int, int]]]:
    """All images that it needs: splits, size factors and canvases."""
    height, width, _ = experiment.network.input_shape
    tests = [("test", factor, test_canvas(experiment)) for factor in experiment.factors]
    return [("train+validation", 1.0, (height, width)), *tests]


def collect(experiments: Iterable[Experiment], source: Source) -> None:
    """Finds and checks all images that some experiments need, before the first."""
    needed = {}
    for experiment in experiments:
        needed.setdefault(experiment.dataset, set()).update(parts(experiment))
    for dataset, found in needed.items():
        source.collect(dataset, found)


def test_canvas(experiment: Experiment) -> tuple[int, int]:
    side = experiment.test_canvas or DATASETS[experiment.dataset].test_canvas
    return side, side


def write(
    name: str,
    experiment: Experiment,
    options: Options,
    model: keras.Model,
    networks: Mapping[str, ScaleGeneralization],
    histogram: ScaleSelectionHistogram | None,
    seconds: Mapping[str, float],
) -> None:
    """The network, the pictures and the results."""
    save_network(model, options.out / "model.keras")
    record = {
        "name": name,
        "experiment": dataclasses.asdict(experiment),
        "seed": options.seed,
        "seconds": seconds,
        "parameters": parameters(model),
        "policy": keras.config.dtype_policy().name,
        "maps": maps(experiment),
    }
    dataset, canvas = experiment.dataset, test_canvas(experiment)
    source, factors = options.source, experiment.factors
    if not experiment.plain:
        limit = min(SEARCHED, experiment.test_limit or SEARCHED)
        tests = source.arrays(dataset, "test", factors[-1], canvas=canvas, limit=limit)
        write_insight(options.out, model, *tests, dataset)
    images = sample_images(dataset, factors, source, canvas=canvas)
    write_results(options.out, networks, histogram, images, record)
