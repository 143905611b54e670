"""Runs an experiment into a folder: stages, test, pictures, record."""

import argparse
import dataclasses
import itertools
import math
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from experiments import Experiment, Stage
from images import Part, Source
from networks import plain_resnet, variant
from records import write_record

from keras_gdrn.commands import replacing
from keras_gdrn.data import DATASETS
from keras_gdrn.evaluation import (
    ScaleGeneralization,
    ScaleSelectionHistogram,
    scale_generalization,
    scale_selection_histogram,
)
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock
from keras_gdrn.models import gauss_der_resnet, with_input_shape, with_sigma0
from keras_gdrn.training import on_devices, train_in_stages
from keras_gdrn.tuning import parameters
from keras_gdrn.visualization import (
    activation_maps,
    effective_filters,
    plot_activation_maps,
    plot_effective_filters,
    plot_scale_generalization,
    plot_scale_selection_histogram,
    plot_sizes,
    size_label,
)

# A progress bar on a terminal, one line for each epoch in a log file.
VERBOSE = 1 if sys.stdout.isatty() else 2
# Of a test: images at a time, and bytes of the widest map of all of them.
TEST_BATCH, MAP_BYTES = 50, 2**29
# Activation maps: among so many test images, at these scales, of the classes of the
# paper's figure (CIFAR-10 calls a car an automobile), or else of so many classes.
SEARCHED, ROWS, SHOWN_SIGMA0 = 100, 5, (0.5, 1.0, 2.0)
SHOWN_CLASSES = ("bird", "car", "automobile", "dog", "monkey", "ship")


def run(name: str, experiment: Experiment, options: argparse.Namespace) -> None:
    """Trains and tests; may raise `OutOfTime`, after which the same call goes on.

    Args:
        name: Name of the experiment.
        experiment: The experiment.
        options: `out`, `seed`, `source`, `max_minutes`, `start_from` (the folder of
            another run), `jit`, `tensorboard` and `devices`.
    """
    start = time.perf_counter()
    weights, seconds = train(experiment, options)
    results = {}
    for stage in experiment.stages:
        last = stage is experiment.stages[-1]
        # One device tests, whichever have trained.
        model = network(experiment, stage.sigma0, options.seed)
        model.set_weights(weights[stage.name])
        if last and experiment.test_sigma0:
            model = with_sigma0(model, experiment.test_sigma0)
        print(f"Test of {stage.name}")
        result, histogram = evaluate(model, experiment, options.source)
        results[name if last else f"{name}, {stage.name}"] = result
    seconds["in all"] = time.perf_counter() - start
    extent = experiment.network.receptive_field
    centered = experiment.network.spatial_selection == "center"
    whole = experiment.plain or not (centered and extent)
    record = {
        "name": name,
        "experiment": dataclasses.asdict(experiment),
        "seed": options.seed,
        "seconds": seconds,
        "parameters": parameters(model),
        "policy": keras.config.dtype_policy().name,
        "maps": "whole" if whole else f"windows ({extent})",
        "factors": list(experiment.factors),
        "accuracies": {of: r.accuracies.tolist() for of, r in results.items()},
    }
    if histogram is not None:
        record["sigma0"] = histogram.sigma0.tolist()
        record["scale_selection"] = histogram.shares.tolist()
    with replacing(options.out / "model.keras") as partial:
        model.save(partial)
    write_pictures(experiment, model, results, histogram, options)
    write_record(options.out, record)


def train(
    experiment: Experiment, options: argparse.Namespace
) -> tuple[dict[str, list[np.ndarray]], dict[str, float]]:
    """The weights after each stage, and the seconds that its epochs took, by name."""
    stages = experiment.stages
    if experiment.plain:  # without scale channels
        stages = [dataclasses.replace(stage, sigma0=None) for stage in stages]
    if options.start_from:
        take_over(stages, options.start_from, options.out)
    weights, seconds = {}, {}
    logs = options.out / "tensorboard"
    callbacks = [keras.callbacks.TensorBoard(logs)] if options.tensorboard else []

    def after_stage(stage: Stage, model: keras.Model, history: Any) -> None:
        weights[stage.name] = model.get_weights()
        seconds[stage.name] = sum(history.history["seconds"])

    def images_of(stage: Stage) -> tf.data.Dataset:
        return options.source.batches(
            experiment.dataset,
            "train+validation",  # as in the paper, when all had been chosen
            canvas=experiment.network.input_shape[:2],
            batch_size=stage.recipe.batch_size,
            shuffle=True,
            seed=options.seed,
            limit=stage.limit,
        )

    with on_devices(options.devices):
        model = network(experiment, experiment.stages[-1].sigma0, options.seed)
        train_in_stages(
            variant(model, experiment.variant),
            stages,
            images_of,
            out=options.out,
            seed=options.seed,
            max_minutes=options.max_minutes,
            after_stage=after_stage,
            jit_compile=True if options.jit else "auto",
            callbacks=callbacks,
            verbose=VERBOSE,
        )
    return weights, seconds


def take_over(stages: Sequence[Stage], other: Path, out: Path) -> None:
    """Copies the first stage of another run, and those of one channel that follow it.

    One scale channel is the same whatever pools it; `fit` refuses what differs.
    """
    single = itertools.takewhile(lambda stage: len(stage.sigma0 or ()) == 1, stages[1:])
    for stage in (stages[0], *single):
        if not (out / stage.name).exists():
            shutil.copytree(other / stage.name, out / stage.name)


def network(
    experiment: Experiment, sigma0: tuple[float, ...], seed: int
) -> keras.Model:
    """The network with scale channels at `sigma0`, as its training begins."""
    keras.utils.set_random_seed(seed)
    of = experiment.network
    if experiment.plain:
        return plain_resnet(of.input_shape, of.classes, of.widths)
    return gauss_der_resnet(**{**dataclasses.asdict(of), "sigma0": sigma0})


def evaluate(
    model: keras.Model, experiment: Experiment, source: Source
) -> tuple[ScaleGeneralization, ScaleSelectionHistogram | None]:
    """Accuracy at each size factor and, where there are scales, which decide."""
    canvas = test_canvas(experiment)
    model = with_input_shape(model, (*canvas, model.input_shape[-1]))
    options = {
        "canvas": canvas,
        "limit": experiment.test_limit,
        "batch_size": test_batch(model, experiment),
    }
    tests = {
        factor: _announced(factor, source, experiment.dataset, options)
        for factor in experiment.factors
    }
    if experiment.plain:
        return scale_generalization(model, tests), None
    histogram = scale_selection_histogram(model, tests)
    return ScaleGeneralization(histogram.factors, histogram.accuracies), histogram


def _announced(
    factor: float, source: Source, dataset: str, options: dict
) -> Iterator[tuple]:
    print(f"  size factor {size_label(factor)}", flush=True)
    yield from source.batches(dataset, "test", factor, **options)


def test_batch(model: keras.Model, experiment: Experiment) -> int:
    """How many images at a time: their widest maps need `MAP_BYTES` at most."""
    scales = 1
    if not experiment.plain:
        scales = len(model.get_layer("scale_channels").sigma0)
    values = scales * max(experiment.network.widths) * math.prod(model.input_shape[1:3])
    return max(1, min(TEST_BATCH, MAP_BYTES // (4 * values)))


def test_canvas(experiment: Experiment) -> tuple[int, int]:
    side = experiment.test_canvas or DATASETS[experiment.dataset].test_canvas
    return side, side


def parts(experiment: Experiment) -> list[Part]:
    """All images that it needs: splits, size factors and canvases."""
    height, width, _ = experiment.network.input_shape
    tests = [("test", factor, test_canvas(experiment)) for factor in experiment.factors]
    return [("train+validation", 1.0, (height, width)), *tests]


def write_pictures(
    experiment: Experiment,
    model: keras.Model,
    results: dict[str, ScaleGeneralization],
    histogram: ScaleSelectionHistogram | None,
    options: argparse.Namespace,
) -> None:
    """Accuracies, samples and, of scale channels, what the paper shows of them."""
    figures = {"scale_generalization": plot_scale_generalization(results)}

    def images_at(factor: float, limit: int) -> tuple[np.ndarray, np.ndarray]:
        of = {"canvas": test_canvas(experiment), "limit": limit}
        return options.source.arrays(experiment.dataset, "test", factor, **of)

    factors = experiment.factors
    figures["sizes"] = plot_sizes(
        {factor: images_at(factor, 4)[0] for factor in factors}
    )
    if histogram is not None:
        figures["scale_selection"] = plot_scale_selection_histogram(histogram)
        channel = model.get_layer("scale_channels").network
        figures["effective_filters"] = plot_effective_filters(filters_of_paper(channel))
        images, labels = images_at(
            factors[-1], min(SEARCHED, experiment.test_limit or SEARCHED)
        )
        class_names = DATASETS[experiment.dataset].class_names
        model = with_input_shape(model, images.shape[1:])
        chosen = shown_images(model, images, labels, class_names)
        if chosen:
            maps_of = activation_maps(
                model, images[chosen], labels[chosen], SHOWN_SIGMA0, batch_size=1
            )
            names = [class_names[label] for label in labels[chosen]]
            figures["activation_maps"] = plot_activation_maps(
                images[chosen], maps_of, SHOWN_SIGMA0, names=names
            )
        else:
            print("No test image was classified correctly: no activation maps.")
    for name, figure in figures.items():
        figure.savefig(options.out / f"{name}.png")


def shown_images(
    model: keras.Model, images: np.ndarray, labels: np.ndarray, class_names: Sequence
) -> list[int]:
    """The first correctly classified image of each class that is shown: its number."""
    wanted = [class_names.index(name) for name in SHOWN_CLASSES if name in class_names]
    if not wanted:
        present = np.unique(labels)
        wanted = list(present[:: max(1, len(present) // ROWS)][:ROWS])
    answers = model.predict(images, batch_size=1, verbose=0).argmax(axis=-1)
    correct = (np.flatnonzero((labels == k) & (answers == k)) for k in wanted)
    return [int(numbers[0]) for numbers in correct if len(numbers)]


def filters_of_paper(channel: keras.Model) -> dict[str, np.ndarray]:
    """Effective filters at σ_0 = 1 of four layers, of 18 the paper's: 2, 10, 11, 17.

    They are an early layer, the two of a block in the middle, and the last but one.
    """
    blocks = (
        (layer.conv1, layer.conv2)
        if isinstance(layer, GaussDerResidualBlock)
        else (layer,)
        for layer in channel.layers
    )
    layers = [x for x in itertools.chain(*blocks) if isinstance(x, GaussDerConv)]
    middle, last = 2 * (len(layers) // 4 + 1), max(1, len(layers) - 1)
    numbers = sorted({min(n, last) for n in (2, middle, middle + 1, last)})
    return {f"layer {n}": effective_filters(layers[n - 1]) for n in numbers}
