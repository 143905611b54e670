"""How long an experiment takes on this machine, roughly, before anything starts."""

import functools
import math
import os
import time
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf
from experiments import Experiment

from keras_gdrn.data import DATASETS
from keras_gdrn.models import Architecture

# Speed of a step of training, as a share of that of a product of large matrices:
# 0.7 to 0.9 on one core, of four networks of the budget `small`.
EFFICIENCY = 0.7
# Batch normalization, ReLU and the like move memory: as long as so many multiply-adds.
ELEMENTWISE = 100
# Seconds to build and trace the network of a stage, and that of the test.
PREPARATION = 10.0
# Half-width of a window in standard deviations where the network leaves it open.
HALF_WIDTH = 2.5


def announcement(experiment: Experiment) -> str:
    """Such as "about 40 h on 2 cores; see --budget"."""
    return f"about {duration(seconds(experiment))} on {machine()}; see --budget"


def seconds(experiment: Experiment) -> float:
    """Training and test, within a factor of about three."""
    training = sum(
        3 * stage.recipe.epochs * images * of_image(experiment, stage.sigma0)
        for stage in experiment.stages
        for images in [_images(experiment, "train+validation", stage.limit)]
    )
    tests = _images(experiment, "test", experiment.test_limit)
    sigma0 = experiment.test_sigma0 or experiment.stages[-1].sigma0
    side = experiment.test_canvas or DATASETS[experiment.dataset].test_canvas
    test = len(experiment.factors) * tests * of_image(experiment, sigma0, side)
    preparation = PREPARATION * (len(experiment.stages) + 1)
    return preparation + (training + test) / (EFFICIENCY * speed())


def of_image(
    experiment: Experiment, sigma0: tuple[float, ...], side: int | None = None
) -> float:
    """Multiply-adds of a forward pass of one image, all scale channels together."""
    network = experiment.network
    side = side or network.input_shape[0]
    if experiment.plain:
        return _plain(network, side)
    return sum(cost for sigma in sigma0 for cost in _layer_costs(network, side, sigma))


@functools.cache
def speed() -> float:
    """Multiply-adds a second of a product of two matrices."""
    size = 4096 if tf.config.list_physical_devices("GPU") else 1024
    matrix = keras.ops.convert_to_tensor(np.ones((size, size), "float32"))
    times = []
    for _ in range(4):
        start = time.perf_counter()
        np.asarray(keras.ops.matmul(matrix, matrix)[0, 0])
        times.append(time.perf_counter() - start)
    return size**3 / min(times)


def machine() -> str:
    gpus = len(tf.config.list_physical_devices("GPU"))
    return f"{gpus} GPU(s)" if gpus else f"{os.cpu_count()} cores"


def duration(seconds: float) -> str:
    """As 40 s, 3.1 min, 2.5 h or 120 days."""
    units = ((86400, "days"), (3600, "h"), (60, "min"), (1, "s"))
    length, unit = next((u for u in units if seconds >= 2 * u[0]), units[-1])
    count = seconds / length
    return f"{count:.0f} {unit}" if count >= 9.5 else f"{count:.1f} {unit}"


def _images(experiment: Experiment, split: str, limit: int | None) -> int:
    size = DATASETS[experiment.dataset].size(split)
    return min(size, limit or size)


def _layer_costs(network: Architecture, side: int, sigma0: float) -> Iterator[float]:
    """Of each layer of one scale channel, from the last to the first."""
    windows = network.spatial_selection == "center" and network.receptive_field
    q = HALF_WIDTH if network.receptive_field == "auto" else network.receptive_field
    jet = 6 if network.zero_order else 5
    layers = _layers(network)
    variance = (layers[-1][2] * sigma0) ** 2  # the last layer counts twice
    for inputs, outputs, relative, separable in reversed(layers):
        sigma = relative * sigma0
        window = [side, side]  # of the output and the input
        if windows:
            reach = (math.sqrt(v) for v in (variance, variance + sigma**2))
            window = [min(side, 2 * math.ceil(q * s) + 2) for s in reach]
        variance += sigma**2
        after, before = window
        rank = min(after, 1.55 * before / sigma + 2)  # coefficients along an axis
        mix = jet * inputs * (1 if separable else outputs)
        mix += inputs * outputs if separable else 0
        yield (
            rank**2 * mix
            + 3 * inputs * rank * before * (rank + before)
            + outputs * rank * after * (rank + after)
            + ELEMENTWISE * outputs * after**2
        )


def _layers(network: Architecture) -> list[tuple[int, int, float, bool]]:
    """Input and output channels, relative scale, and whether it is separable."""
    widths, r = network.widths, network.ratio
    layers = [(network.input_shape[-1], widths[0], 1.0, False)]
    blocks = len(widths) - 1
    for block in range(1, blocks + 1):
        before, after = widths[block - 1 : block + 1]
        separable = block > blocks - network.separable_blocks
        layers.append((before, after, r**block, separable))
        if network.residual:
            layers.append((after, after, r**block, separable))
    return [*layers, (widths[-1], network.classes, r ** len(widths), False)]


def _plain(network: Architecture, side: int) -> float:
    """Of `plain_resnet`: every other block halves the resolution."""
    cost = side**2 * (9 * network.input_shape[-1] + ELEMENTWISE) * network.widths[0]
    for block, filters in enumerate(network.widths[1:]):
        side = math.ceil(side / 2) if block % 2 == 0 else side
        before = network.widths[block]
        cost += side**2 * filters * (9 * (before + filters) + 2 * ELEMENTWISE)
    return cost
