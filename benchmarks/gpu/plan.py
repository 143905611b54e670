"""What `run.py` measures, as units by their keys, in the order of their worth."""

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

import errors
import speed
from device import Peak, peak
from journal import Journal

from keras_gdrn.models import ARCHITECTURES

PARTS = ("errors", "speed", "batches")
# What a measurement is kept by, and a function that returns its result.
Unit = tuple[tuple[str, ...], Callable[[], dict]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        presets: Presets whose time is measured; of the first one errors and batches
            are measured too.
        sigmas: Scales of layers, in pixels.
        size, width: Side of the maps of these layers, and number of their channels.
        sigma0: Initial scales of single channels.
        batch: Images that a network is given.
        batches: How many images are tried, up to the memory.
        repeats: Samples of each step.
        product: Rows of the matrices by which an unknown device is measured.
    """

    presets: dict
    sigmas: tuple[float, ...] = tuple(2.0 ** (i / 2) for i in range(-2, 11))
    size: int = 64
    width: int = 64
    sigma0: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    batch: int = 32
    batches: tuple[int, ...] = tuple(2**i for i in range(4, 13))
    repeats: int = 15
    product: int = 8192


# The network of most interest first, as time may end.
_NAMES = sorted(ARCHITECTURES, key="rescaled_cifar10".__ne__)
FULL = Plan({name: ARCHITECTURES[name] for name in _NAMES})
_TINY = dataclasses.replace(
    ARCHITECTURES["digits"], input_shape=(12, 12, 1), widths=(4, 4), sigma0=(0.7, 1.0)
)
QUICK = Plan({"tiny": _TINY}, (2.0,), 16, 4, (), 2, (2, 4), 3, 256)


def units(plan: Plan, parts: tuple[str, ...], at: str, done: Journal) -> Iterator[Unit]:
    """All measurements, by their keys; each is a function that returns its result.

    Args:
        plan: What to measure.
        parts: Some of `PARTS`.
        at: Name of the precision of the networks whose time is measured.
        done: Where the result of a unit is before the next one is asked for.
    """
    if "errors" in parts:
        yield from _errors(plan)
    if parts == ("errors",):
        return
    yield ("peak", at), partial(_peak, at, plan.product)
    options = {"repeats": plan.repeats, "peak": Peak(**done["peak", at])}
    if "speed" in parts:
        yield from _speed(plan, at, options)
    if "batches" in parts:
        for key, function in _batches(plan, at, options):
            yield key, function
            if "failed" in done[key]:  # more will not fit either
                return


def _errors(plan: Plan) -> Iterator[Unit]:
    for name in errors.LAYERS:
        for sigma in plan.sigmas:
            arguments = name, sigma, plan.size, plan.width
            key = ("errors", "layer", name, f"{sigma:.3g}")
            yield key, partial(errors.layer_errors, *arguments)
    name, settings = next(iter(plan.presets.items()))
    for sigma0 in (*((scale,) for scale in plan.sigma0), settings.sigma0):
        key = ("errors", "network", name, ", ".join(f"{s:.3g}" for s in sigma0))
        yield key, partial(errors.network_errors, settings, sigma0, batch=4)


def _peak(at: str, size: int) -> dict:
    return dataclasses.asdict(peak(at, size))


def _speed(plan: Plan, at: str, options: dict) -> Iterator[Unit]:
    for preset, settings in plan.presets.items():
        for task in speed.TASKS:
            for name in speed.contestants(settings, plan.batch):
                arguments = settings, name, task, at, plan.batch
                key = ("speed", at, preset, task, name)
                yield key, partial(speed.compared, *arguments, **options)


def _batches(plan: Plan, at: str, options: dict) -> Iterator[Unit]:
    preset, settings = next(iter(plan.presets.items()))
    for batch in plan.batches:
        arguments = settings, at, batch
        key = ("batches", at, preset, str(batch))
        yield key, partial(speed.at_batch, *arguments, **options)
