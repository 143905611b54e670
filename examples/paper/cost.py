"""What a training costs: hours on this machine and on an H100, and memory.

Hours here follow from counted operations and a step that is timed. Hours and memory of
an H100 are bounds that were counted without a GPU, in float32, for the paper's networks
(benchmarks/gpu/paper.py wrote them to results/gpu/paper.json).
"""

import dataclasses
import functools
import json
import math
import time
from pathlib import Path

import keras
import numpy as np
from experiments import EXPERIMENTS, Experiment, Stage
from run import canvas, images_of, network

from keras_gdrn.kernels import low_rank_factors
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock
from keras_gdrn.models import Architecture, gauss_der_resnet

RECORD = Path(__file__).parents[2] / "results" / "gpu" / "paper.json"
SMALL_GPU = 16  # GB
# Two layers of the widths of larger networks: quick to compile.
TIMED, TIMED_BATCH = Architecture((32, 32, 3), (64, 128), 1.5, (1.0,)), 16
EXPLANATION = (
    "Hours of training: here by counted operations and a step timed now, beside "
    "whatever else runs; on an H100 by a bound that was counted without a GPU, in "
    "float32, as is the memory. With less memory: --batch-size N, which departs from "
    "the paper."
)


def cost(experiment: Experiment) -> str:
    """Hours and memory of a training, in words."""
    here = sum(seconds_here(experiment, stage) for stage in experiment.stages)
    found = [on_an_h100(experiment, stage) for stage in experiment.stages]
    if None in found:
        return f"{_hours(here)} here"
    there, memory = zip(*found, strict=True)
    needed = math.ceil(max(memory))
    return (
        f"{_hours(here)} here, {_hours(sum(there))} on an H100, {needed} GB "
        f"({SMALL_GPU} {'do' if needed <= SMALL_GPU else 'do not'})"
    )


def on_an_h100(experiment: Experiment, stage: Stage) -> tuple[float, float] | None:
    """Seconds of a stage and GB, if its step was counted.

    A row of the record stands for all networks of a data set with as many scale
    channels: pooling, zero-order term and separable blocks matter less.
    """
    of, default = experiment.network, Architecture
    counted = (other.network for other in EXPERIMENTS.values() if not other.plain)
    known = {(other.input_shape, other.widths) for other in counted}
    usual = of.density is None or (of.density, of.receptive_field) == (
        default.density,
        default.receptive_field,
    )
    budget, scales = "fast" if of.density else "full", len(stage.sigma0)
    name = f"{experiment.dataset}, {scales} scale{'s'[: scales > 1]}, {budget}"
    row = _record().get(name)
    if experiment.plain or not usual or (of.input_shape, of.widths) not in known:
        return None
    if row is None:
        return None
    share = stage.recipe.batch_size / row["images"]
    steps = math.ceil(images_of(experiment, stage) / stage.recipe.batch_size)
    seconds = stage.recipe.epochs * steps * share * row["ms"] / 1000
    return seconds, share * row["memory GB"]


def seconds_here(experiment: Experiment, stage: Stage) -> float:
    images = stage.recipe.epochs * images_of(experiment, stage)
    is_on_grids = experiment.network.density is not None and not experiment.plain
    return images * operations(experiment, stage) / _rate(is_on_grids)


def operations(experiment: Experiment, stage: Stage) -> float:
    """Operations of products and convolutions in training on one image."""
    scales = (1.0,) if experiment.plain else stage.sigma0
    shape = (*canvas(experiment, stage), experiment.network.input_shape[-1])
    # What does not matter here would make a network another.
    alike = {"scale_pooling": "max", "scale_dropout": 0.0, "boundary": "zero"}
    alike |= {"head_initializer": "positive", "epsilon": 1e-3, "sigma0": tuple(scales)}
    alike = dataclasses.replace(experiment.network, **alike, input_shape=shape)
    return _operations(alike, experiment.plain)


@functools.cache
def _operations(of: Architecture, plain: bool) -> float:
    """Weights times positions, forward and twice backward; two for each."""
    model = _model(of, plain)
    if plain:
        layers = [la for la in model.layers if isinstance(la, keras.layers.Conv2D)]
        return 6 * sum(_weights(la) * math.prod(la.output.shape[1:3]) for la in layers)
    channels = model.get_layer("scale_channels")
    if channels.density is None:  # whole maps
        kinds = (GaussDerConv, GaussDerResidualBlock)
        layers = [la for la in channels.network.layers if isinstance(la, kinds)]
        return 6 * sum(
            _weights(layer) * _coefficients(layer, scale, of.input_shape[:2])
            for layer in layers
            for scale in of.sigma0
        )
    total = 0.0
    for call in channels.plan.calls:
        if call.convolutions:
            grids = channels.plan.grids(call.output, of.input_shape[:2])
            each = [math.prod(grid.sizes) for grid in grids]
            total += _weights(call.layer) * sum(each) * len(of.sigma0) / len(each)
    return 6 * total


def _coefficients(layer: keras.Layer, scale: float, sizes: tuple[int, ...]) -> int:
    """Values that a layer on the pixels combines: wide kernels have few."""
    conv = getattr(layer, "conv1", layer)
    factors = [
        low_rank_factors(
            size, scale * conv.sigma, conv.order, conv.boundary, conv.epsilon
        )
        for size in sizes
    ]
    counts = [
        n if f is None else f.synthesis.shape[1]
        for n, f in zip(sizes, factors, strict=True)
    ]
    return math.prod(counts)


@functools.cache
def _model(of: Architecture, plain: bool) -> keras.Model:
    stage = Stage("counted", None, of.sigma0)
    of_one = Experiment("counted", "cifar10", of, (stage,), plain=plain)
    return network(of_one, stage.sigma0, seed=0)


def _weights(layer: keras.Layer) -> int:
    kernels = (w.shape for w in layer.trainable_weights if len(w.shape) > 1)
    return sum(map(math.prod, kernels))


@functools.cache
def _rate(is_on_grids: bool) -> float:
    """Operations per second of a training step on this machine."""
    of = dataclasses.replace(TIMED, density=1.0 if is_on_grids else None)
    model = gauss_der_resnet(**dataclasses.asdict(of))
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(True))
    images = np.random.default_rng(0).random((TIMED_BATCH, *of.input_shape), "float32")
    labels = np.zeros(TIMED_BATCH, int)
    seconds = []
    for _ in range(4):  # the first two compile and warm up
        start = time.perf_counter()
        model.train_on_batch(images, labels)
        seconds.append(time.perf_counter() - start)
    return TIMED_BATCH * _operations(of, False) / min(seconds[2:])


@functools.cache
def _record() -> dict[str, dict[str, float]]:
    if not RECORD.exists():  # of a copy of the examples alone
        return {}
    return json.loads(RECORD.read_text(encoding="utf-8"))["counts"]


def _hours(seconds: float) -> str:
    if seconds < 3600:
        return f"{math.ceil(seconds / 60)} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 10 else f"{hours:.0f} h"
