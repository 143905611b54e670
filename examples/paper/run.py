"""Runs an experiment in a folder: stages, test, record."""

import argparse
import dataclasses
import importlib.util
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
from experiments import Experiment, Stage
from images import Part
from networks import plain_resnet
from records import environments, write_record

from keras_gdrn.commands import atomic_write, save_figure
from keras_gdrn.data import DATASETS
from keras_gdrn.evaluation import scale_generalization, scale_selection_histogram
from keras_gdrn.models import (
    count_parameters,
    gauss_der_resnet,
    with_input_shape,
    with_sigma0,
)
from keras_gdrn.training import on_devices, train_in_stages
from keras_gdrn.visualization import (
    plot_scale_generalization,
    plot_scale_selection_histogram,
    size_label,
)

# A progress bar on a terminal, one line for each epoch in a log file.
VERBOSE = 1 if sys.stdout.isatty() else 2
# In the test: images at a time, and bytes of their widest maps.
TEST_BATCH, MAP_BYTES = 50, 2**29


def run(name: str, experiment: Experiment, options: argparse.Namespace) -> None:
    """Trains and tests; after an interruption, the same call resumes.

    The `options` are `out`, `seed`, `source`, `start_from` (the folder of another run)
    and `devices`.
    """
    start = time.perf_counter()
    environments(options.out)
    weights, seconds = train(experiment, options)
    results = {}
    for stage in experiment.stages:
        last = stage is experiment.stages[-1]
        # The test always runs on one device.
        model = network(experiment, stage.sigma0, options.seed)
        model.set_weights(weights[stage.name])
        if last and experiment.test_sigma0:
            model = with_sigma0(model, experiment.test_sigma0)
        print(f"Test of {stage.name}")
        result = evaluate(model, experiment, options.source)
        results[name if last else f"{name}, {stage.name}"] = result
    seconds["in all"] = time.perf_counter() - start
    record = {
        "name": name,
        "experiment": dataclasses.asdict(experiment),
        "seed": options.seed,
        "seconds": seconds,
        "parameters": count_parameters(model),
        "policy": keras.config.dtype_policy().name,
        "factors": list(experiment.factors),
        "accuracies": {of: r.accuracies.tolist() for of, r in results.items()},
    }
    if not experiment.plain:
        density = experiment.network.density
        record["maps"] = f"on grids ({density:g})" if density else "on the pixels"
        record["sigma0"] = result.sigma0.tolist()
        record["scale_selection"] = result.shares.tolist()
    with atomic_write(options.out / "model.keras") as partial:
        model.save(partial)
    draw(results, None if experiment.plain else result, options.out)
    write_record(options.out, record)


def draw(results: Mapping[str, Any], selection: Any, out: Path) -> None:
    """The pictures of a run, where matplotlib is installed."""
    if not importlib.util.find_spec("matplotlib"):
        print("No pictures without matplotlib: `pip install matplotlib`")
        return
    save_figure(plot_scale_generalization(results), out / "scale_generalization.png")
    if selection is not None:
        picture = plot_scale_selection_histogram(selection)
        save_figure(picture, out / "scale_selection.png")


def train(experiment: Experiment, options: argparse.Namespace) -> tuple[dict, dict]:
    """The weights after each stage, and the seconds that its epochs took, by name."""
    stages = experiment.stages
    if experiment.plain:  # without scale channels
        stages = [dataclasses.replace(stage, sigma0=None) for stage in stages]
    if options.start_from:
        take_over(stages[0], options.start_from, options.out)
    weights, seconds = {}, {}

    def after_stage(stage: Stage, model: keras.Model, history: Any) -> None:
        weights[stage.name] = model.get_weights()
        seconds[stage.name] = sum(history.history["seconds"])

    def images(stage: Stage) -> Any:
        return options.source.data(
            experiment.dataset,
            "train+validation",  # as in the paper, after all choices
            canvas=canvas(experiment, stage),
            limit=stage.limit,
        )

    with on_devices(options.devices):
        model = network(experiment, experiment.stages[-1].sigma0, options.seed)
        train_in_stages(
            model,
            stages,
            images,
            out=options.out,
            seed=options.seed,
            after_stage=after_stage,
            checkpoint_minutes=options.checkpoint_minutes,
            callbacks=[Hours()],
            verbose=VERBOSE,
        )
    return weights, seconds


class Hours(keras.callbacks.Callback):
    """Says early how long the rest of a stage takes, by its steps 5 to 10."""

    def on_train_begin(self, logs=None):
        self.first = True

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs = self.params["epochs"] - epoch

    def on_train_batch_begin(self, batch, logs=None):
        if self.first and batch == 5:
            self.start = time.perf_counter()
        elif self.first and batch == 10:
            steps = self.epochs * self.params["steps"]
            hours = steps * (time.perf_counter() - self.start) / 5 / 3600
            print(f"Epochs to go: {self.epochs}, about {hours:.1f} h", flush=True)
            self.first = False


def take_over(first: Stage, other: Path, out: Path) -> None:
    """Copies the first stage of another run.

    Pooling has no effect on one scale channel; `fit` refuses other differences.
    """
    if not (out / first.name).exists():
        partial = out / f"partial-{first.name}"
        shutil.rmtree(partial, ignore_errors=True)  # of an interruption
        shutil.copytree(other / first.name, partial)
        partial.rename(out / first.name)


def network(experiment: Experiment, sigma0: Sequence[float], seed: int) -> keras.Model:
    """The network with scale channels at `sigma0` and its initial weights."""
    keras.utils.set_random_seed(seed)
    of = experiment.network
    if experiment.plain:
        return plain_resnet(of.input_shape, of.classes, of.widths)
    return gauss_der_resnet(**{**dataclasses.asdict(of), "sigma0": sigma0})


def evaluate(model: keras.Model, experiment: Experiment, source: Any) -> Any:
    """Accuracy at each size factor and, with scale channels, which ones decide."""
    side = test_side(experiment)
    model = with_input_shape(model, (side, side, model.input_shape[-1]))
    scales = 1 if experiment.plain else len(model.get_layer("scale_channels").sigma0)
    batch_size = test_batch(experiment, scales)
    options = {"canvas": side, "limit": experiment.test_limit, "batch_size": batch_size}

    def images_at(factor: float) -> Iterator[tuple]:
        print(f"  size factor {size_label(factor)}", flush=True)
        yield from source.batches(experiment.dataset, "test", factor, **options)

    tests = {factor: images_at(factor) for factor in experiment.factors}
    test = scale_generalization if experiment.plain else scale_selection_histogram
    return test(model, tests)


def test_batch(experiment: Experiment, scales: int) -> int:
    """How many images at a time: their widest maps need `MAP_BYTES` at most."""
    values = scales * max(experiment.network.widths) * test_side(experiment) ** 2
    return max(1, min(TEST_BATCH, MAP_BYTES // (4 * values)))


def test_side(experiment: Experiment) -> int:
    """Pixels of the canvas of the test images."""
    return experiment.test_canvas or DATASETS[experiment.dataset].test_canvas


def canvas(experiment: Experiment, stage: Stage) -> tuple[int, int]:
    """Pixels of the training images of a stage."""
    return (stage.input_shape or experiment.network.input_shape)[:2]


def parts(experiment: Experiment) -> list[Part]:
    """All images that an experiment needs: splits, size factors and canvases."""
    canvases = dict.fromkeys(canvas(experiment, stage) for stage in experiment.stages)
    training = [("train+validation", 1.0, own) for own in canvases]
    side = test_side(experiment)
    return [*training, *(("test", factor, side) for factor in experiment.factors)]


def images_of(experiment: Experiment, stage: Stage) -> int:
    """Number of training images of a stage."""
    size = DATASETS[experiment.dataset].size("train+validation")
    return min(size, stage.limit or size)
