"""Time, memory and compile time of training steps and predictions, by XLA."""

import dataclasses
import functools
import statistics

import contenders
import jax
import measure
import numpy as np
from device import Peak, memory_limit
from precision import precision
from steps import Step, inference_step, training_step

from keras_gdrn.models import gauss_der_resnet

REFERENCE = "3×3 ResNet"
TASKS = ("training", "inference")


def contestants(settings, batch: int) -> dict:
    """As `network_contenders`, and one scale channel; without what is there twice."""
    networks = contenders.network_contenders(settings, batch)
    if settings.separable_blocks:  # these are the preset's without
        del networks["paper's scheme"]
    windows = settings.spatial_selection == "center"
    if not windows:
        del networks["on whole maps"]
    if len(settings.sigma0) == 1:
        del networks["one pass of it"]
        return networks
    one = {**dataclasses.asdict(settings), "sigma0": (1.0,), "scale_dropout": 0.0}
    networks["one scale channel"] = lambda: gauss_der_resnet(**one), batch
    if windows:
        whole = {**one, "receptive_field": None}
        networks["one on whole maps"] = lambda: gauss_der_resnet(**whole), batch
    return networks


def compared(settings, name: str, task: str, at: str, batch: int, **options) -> dict:
    """A network and the 3×3 ResNet, in turn.

    Args:
        settings: An `Architecture`.
        name: A key of `contestants`.
        task: One of `TASKS`.
        at: Name of the precision.
        options: `repeats` and `peak`, as `timed`.
    """
    reference = reference_step(settings, task, at, batch)
    if name == REFERENCE:
        return timed({name: reference}, **options)
    step = step_of(settings, name, task, at, batch)
    return timed({name: step, REFERENCE: reference}, **options)


@functools.lru_cache(maxsize=1)  # all contenders of a task have the same one
def reference_step(settings, task: str, at: str, batch: int) -> Step:
    return step_of(settings, REFERENCE, task, at, batch)


def step_of(settings, name: str, task: str, at: str, batch: int) -> Step:
    build, count = contestants(settings, batch)[name]
    random = np.random.default_rng(0)
    images = random.random((count, *settings.input_shape), dtype="float32")
    with precision(at):
        model = build()
        if task == "inference":
            return inference_step(model, images)
        labels = np.arange(count, dtype="int32") % settings.classes
        return training_step(model, images, labels)


def timed(steps: dict[str, Step], repeats: int, peak: Peak) -> dict:
    """What is known of the first of the steps; ratios are to the last.

    Args:
        repeats: Samples of each, taken in turn.
        peak: Peak of the device.
    """
    name, *_, reference = (*steps, *steps)
    step = steps[name]
    times = {of: steps[of].times() for of in steps}
    samples = measure.interleaved(
        {of: functools.partial(steps[of].run, times[of]) for of in steps}, repeats
    )
    seconds = {of: [s / times[of] for s in samples[of]] for of in samples}
    median = statistics.median(seconds[name])
    work = step.operations, step.moved
    return {
        "images": len(step.data[0]),
        "seconds": median,
        "ratio": measure.ratios(seconds, reference)[name],
        "tracing": step.tracing,
        "compiling": step.compiling,
        "memory": step.memory,
        "operations": step.operations,
        "moved": step.moved,
        "share": peak.seconds(*work) / median,
        "bound": peak.bound(*work),
        "share of products": step.operations / peak.operations / median,
    }


def at_batch(settings, at: str, batch: int, **options) -> dict:
    """The training step by itself, at a size of the batch, where it fits the memory."""
    reference_step.cache_clear()  # its memory is needed
    step = step_of(settings, "GaussDerResNet", "training", at, batch)
    limit = memory_limit()
    if limit is not None and step.memory > limit:
        return {"failed": f"needs {step.memory} of {limit} bytes"}
    return timed({"GaussDerResNet": step}, **options)


def or_failure(function, *arguments, **options) -> dict:
    """Its result, or why the device could not, as when it is out of memory."""
    try:
        return function(*arguments, **options)
    except jax.errors.JaxRuntimeError as error:
        return {"failed": str(error).splitlines()[0]}
