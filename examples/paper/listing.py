"""All that `reproduce.py` can do, by section of the paper, and the time it takes."""

import math

import keras
from budgets import within
from experiments import EXPERIMENTS, Experiment, Stage
from figures import FIGURES
from run import network

from keras_gdrn.data import DATASETS
from keras_gdrn.tuning import multiply_adds

# Multiply-adds a second of one core of an AMD EPYC in a training step of the larger
# networks, as `benchmarks/run.py` has measured it (docs/guide.md).
SPEED = 40e9


def listing(budget: str) -> str:
    """All experiments and figures by section of the paper, and what they train on."""
    sections: dict[str, list[str]] = {}
    width = max(map(len, (*EXPERIMENTS, *FIGURES)))
    for name, experiment in EXPERIMENTS.items():
        small = within(experiment, budget)
        work = " + ".join(
            f"{stage.recipe.epochs} × {images(small, stage)} in {len(stage.sigma0)}"
            for stage in small.stages
        )
        line = f"  {name.ljust(width)}  {experiment.dataset}, {work}"
        sections.setdefault(experiment.what, []).append(line)
    for name, figure in FIGURES.items():
        sections.setdefault(figure.where, []).append(f"  --figure {name}")
    order = sorted(sections, key=lambda what: (_rank(what), what))
    parts = ["\n".join([what, *sections[what]]) for what in order]
    last = (
        f"Epochs × images in scale channels, --budget {budget}. A run begins with the"
    )
    return "\n\n".join([*parts, f"{last} time that it takes."])


def duration(experiment: Experiment) -> str:
    """Of the training, as 40 s, 3.1 min, 2.5 h or 120 days, within a factor of three.

    A step takes as long as three forward passes; small networks take longer.
    """
    seconds = sum(
        3 * stage.recipe.epochs * images(experiment, stage) * cost(experiment, stage)
        for stage in experiment.stages
    )
    seconds /= SPEED
    units = ((86400, "days"), (3600, "h"), (60, "min"), (1, "s"))
    length, unit = next((u for u in units if seconds >= 2 * u[0]), units[-1])
    count = seconds / length
    return f"{count:.0f} {unit}" if count >= 9.5 else f"{count:.1f} {unit}"


def images(experiment: Experiment, stage: Stage) -> int:
    size = DATASETS[experiment.dataset].size("train+validation")
    return min(size, stage.limit or size)


def cost(experiment: Experiment, stage: Stage) -> int:
    """Multiply-adds of a forward pass of one image, all scale channels together."""
    model = network(experiment, stage.sigma0, 0)
    if not experiment.plain:
        return multiply_adds(model)
    layers = [x for x in model.layers if isinstance(x, keras.layers.Conv2D)]
    return sum(math.prod((*x.output.shape[1:3], *x.kernel.shape)) for x in layers)


def _rank(what: str) -> int:
    """Sections, then appendices, then what is not in the paper."""
    beginnings = ("Sec.", "A.", "")
    return next(n for n, begin in enumerate(beginnings) if what.startswith(begin))
